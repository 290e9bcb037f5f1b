"""The options of ticdc-avro."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_toolkit.row_checksum import VERIFY_OPTION

OPTIONS: tuple[Option, ...] = (VERIFY_OPTION,)
