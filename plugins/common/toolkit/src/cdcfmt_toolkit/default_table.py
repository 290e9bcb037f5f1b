"""The option ``defaultTable``: the table of messages that name none, as those of Flink SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core.filters import parse_table_name, split_name
from cdcfmt_core.options import Option

DEFAULT_TABLE_OPTION: Final = Option(
    name="defaultTable",
    help="`database.table` of messages without a table name, such as those of Flink SQL.",
)
NO_TABLE: Final = (
    "a required field of a row event is missing; set defaultTable for messages that name no table"
)


def default_table(options: Mapping[str, Any]) -> tuple[str, str, str | None] | None:
    """Database, table and schema of the option; None if it is not set.

    :raises OptionError: if it is not the name of a table.
    """
    text = options[DEFAULT_TABLE_OPTION.name]
    if text is None:
        return None
    database, schema, table = split_name(parse_table_name(text, option=DEFAULT_TABLE_OPTION.name))
    return database, table, schema
