"""Where the messages of both wires have what, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdcfmt_core.layout import Layout
from cdcfmt_simple import avro_layouts, json_layouts


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    return [*json_layouts.open_layouts(options), *avro_layouts.open_layouts(options)]
