"""Layouts of both message encodings, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdcfmt_simple.avro.layouts import open_layouts as open_avro_layouts
from cdcfmt_simple.json.layouts import open_layouts as open_json_layouts
from cdcfmt_toolkit.layout import Layout


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layouts of JSON, then those of Avro."""
    return [*open_json_layouts(options), *open_avro_layouts(options)]
