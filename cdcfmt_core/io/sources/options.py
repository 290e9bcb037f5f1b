"""Options of inputs: one table, for every engine that reads files."""

from __future__ import annotations

import json
from typing import Any

from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import Option

STORAGE_OPTIONS = Option(
    name="storageOptions",
    hidden=True,
    help="JSON object of options for the file system (fsspec), such as credentials.",
)

FILE_OPTIONS = (
    Option(
        name="pathGlobFilter",
        help="Only files whose name matches this glob.",
    ),
    Option(
        name="lineFormat",
        type="choice",
        choices=("auto", "value", "message"),
        default="auto",
        help="What a line is: a message's `value`, or a whole `message` as JSON with base64 "
        "`key` and `value`, as Spark writes a Kafka DataFrame to JSON; `auto`: by each line.",
    ),
    Option(
        name="lineSep",
        help="Separator of lines; by default `\\n` or `\\r\\n`.",
    ),
    Option(
        name="scanSchemas",
        type="bool",
        default=True,
        help="Look through the whole input of a batch first: for table schemas where a format's "
        "rows may lack their types (debezium, simple), for DDL statements where rows have them in "
        "part (TiCDC's canal-json, open-protocol); `false` spares that pass.",
    ),
    STORAGE_OPTIONS,
)


def parse_storage_options(text: str | None) -> dict[str, Any]:
    """The JSON object of ``storageOptions``; the error never shows the text."""
    if text is None:
        return {}
    try:
        options = json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise OptionError("option storageOptions: the given text is not a JSON object")
    return options
