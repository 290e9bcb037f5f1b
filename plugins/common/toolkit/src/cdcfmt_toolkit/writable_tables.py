"""Find out, before the first row is written, whether a format can express a table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import attrs

from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import TableSchema

_NAMED: Final = 10
"""Maximum number of columns that an error names."""


def check_tables(encoder: MessageEncoder, tables: Iterable[TableSchema]) -> None:
    """Check that the rows of tables can be written; nothing is registered.

    Options with the value ``skip`` apply, and are counted: use an encoder that writes nothing.

    :raises EncodeError: for what is known from the tables alone: a type that the format lacks, a
        column of unknown type, a name that it cannot express.  Names table, column, type and the
        option that helps, and all other such columns.
    """
    new = _distinct(tables)
    found = islice((each for table in new for each in _errors(encoder, table)), _NAMED + 1)
    errors = {".".join(filter(None, [each.table, each.column])): each for each in found}
    if not errors:
        return
    name, *others = errors
    first = errors[name]
    if others:
        more = ", …" if len(errors) > _NAMED else ""
        text = ", ".join(others[: _NAMED - 1])
        first = first.at(reason=f"{first.reason}. Also: {text}{more}")
    raise first


def _distinct(tables: Iterable[TableSchema]) -> Iterator[TableSchema]:
    """Each object once: most rows of a table have the same."""
    seen: set[TableSchema] = set()
    for table in tables:
        if table not in seen:
            seen.add(table)
            yield table


def _errors(encoder: MessageEncoder, table: TableSchema) -> Iterator[EncodeError]:
    """The error of each column that cannot be written, or of the whole table."""
    is_whole = True
    while table.columns:
        try:
            encoder.prepare(table, register=False)
            return
        except EncodeError as error:
            left = tuple(each for each in table.columns if each.name != error.column)
            is_known = len(left) < len(table.columns)
            if is_whole or is_known:
                yield error
            if not is_known:
                return
            keys = tuple(name for name in table.key_columns if name != error.column)
            table, is_whole = attrs.evolve(table, columns=left, key_columns=keys), False
