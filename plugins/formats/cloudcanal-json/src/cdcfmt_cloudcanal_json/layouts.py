"""The layout of row messages, for the compiled kernel."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdcfmt_cloudcanal_json.message import MEMBERS, OP_OF_ACTION, ROW_DATA
from cdcfmt_cloudcanal_json.plans import column_encodings
from cdcfmt_toolkit.layout import Extra, Layout

_EXTRA: Final[Mapping[tuple[str, ...], Extra]] = {
    ("bid",): Extra("bid"),
    ("sql",): Extra("sql", (None, "", False, 0, [], {})),
}


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layout of rows."""
    return (
        Layout(
            members=MEMBERS,
            ops=OP_OF_ACTION,
            row_words=(ROW_DATA, "", None),
            encodings=functools.partial(column_encodings, options["binaryEncoding"]),
            extra=lambda _: _EXTRA,
            in_lists=True,
            deleted_row="after",
            repeats_database=True,
        ),
    )
