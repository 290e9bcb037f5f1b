"""How the rows of one table are written: made once per table schema, then looked up."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import attrs
import orjson

from cdcfmt_canal_json.templates import CANAL, Template
from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.mysql import PRIMARY_KEY_FLAG, jdbc_code, named_flags, signed_limit
from cdcfmt_core.mysql.column_type import ColumnType
from cdcfmt_core.mysql.text_output import RowPrinter, column_printers, text_printer
from cdcfmt_core.mysql.type_output import column_type, type_text
from cdcfmt_core.toolkit.json_output import escape_for_go
from cdcfmt_core.toolkit.plans import Plans
from cdcfmt_core.toolkit.row_messages import Either, Part, Which

_COLUMN_BYTES: Final = 1_400
"""Of a column of a plan, beside its schema."""
_MAX_TYPES: Final = 1_000


@attrs.define
class EncodePlan:
    """A table's printer and the parts of a message that all its rows share.

    ``names`` go into the layout's template; ``handle`` are the columns that identify a row.
    """

    schema: TableSchema
    names: dict[bytes, bytes]
    print_row: RowPrinter
    handle: tuple[str, ...]
    _types: dict[str, ColumnType]
    _texts: dict[str, str]
    _unsigned: tuple[tuple[str, int], ...]
    _known: dict[tuple[Any, ...], tuple[bytes, bytes]] = attrs.field(factory=dict)

    def types(self, values: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """``sqlType`` and ``mysqlType`` of a row: an unsigned value beyond its signed
        type's maximum has another code.  The values are good ones."""
        large = tuple([(values.get(name) or 0) >= limit for name, limit in self._unsigned])
        key = (large, None if len(values) == len(self._texts) else tuple(values))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_TYPES:
                self._known.clear()
            found = self._known[key] = self._make_types(values)
        return found

    def labels(self, names: Collection[str] | None) -> dict[str, str]:
        """The text before the values of these columns, or of all, in the table's order."""
        return {
            name: escape_for_go(orjson.dumps(name)).decode() + ":"
            for name in self._texts
            if names is None or name in names
        }

    def type_parts(self, labels: Mapping[str, str], image: Which) -> tuple[list[Part], list[Part]]:
        """``sqlType`` and ``mysqlType`` of rows with these columns, for the kernel."""
        limits = dict(self._unsigned)
        parts: list[Part] = ["{"]
        for name, label in labels.items():
            type_ = self._types[name]
            parts.append(label if len(parts) == 1 else f",{label}")
            code, limit = str(jdbc_code(type_, 0)), limits.get(name)
            if limit is None:
                parts.append(code)
            else:
                parts.append(Either(image, name, limit, code, str(jdbc_code(type_, limit))))
        _, mysql_type = self.types(dict.fromkeys(labels))
        return [*parts, "}"], [mysql_type.decode()]

    def _make_types(self, values: Mapping[str, Any]) -> tuple[bytes, bytes]:
        names = [name for name in self._texts if name in values]
        sql_type = {name: jdbc_code(self._types[name], values[name]) for name in names}
        mysql_type = {name: self._texts[name] for name in names}
        return escape_for_go(orjson.dumps(sql_type or None)), escape_for_go(
            orjson.dumps(mysql_type)
        )


class EncodePlans:
    """Plans by table schema, compared by identity."""

    def __init__(self, context: EncoderContext, layout: Template, *, full_types: bool) -> None:
        self._context = context
        self._layout = layout
        self._full_types = full_types
        self.find = Plans(self._make, _COLUMN_BYTES).find

    def _make(self, table: TableSchema) -> EncodePlan:
        """:raises EncodeError: for a column whose type is unknown."""
        zone = self._context.time_zone
        types = {column.name: column_type(column) for column in table.columns}
        texts = {name: type_text(type_, full=self._full_types) for name, type_ in types.items()}
        printers = column_printers(
            table.columns, lambda logical: text_printer(logical, time_zone=zone, dumps=orjson.dumps)
        )
        self._context.note_zoneless_timestamps(table)
        try:
            pk_names = _primary_key(table)
            # TiCDC says [] of a table without a primary key, Canal null.
            no_key: list[str] | None = None if self._layout is CANAL else []
            names = {
                b"database": escape_for_go(orjson.dumps(table.database)),
                b"table": escape_for_go(orjson.dumps(table.table)),
                b"pkNames": escape_for_go(orjson.dumps(pk_names or no_key)),
            }
            orjson.dumps(list(texts))
        except TypeError:
            raise EncodeError("a name of the table or of a column is not UTF-8") from None
        limits = ((name, signed_limit(type_)) for name, type_ in types.items())
        unsigned = tuple((name, limit) for name, limit in limits if limit is not None)
        handle = table.key_columns or tuple(pk_names)
        return EncodePlan(table, names, RowPrinter(printers), handle, types, texts, unsigned)


def _primary_key(table: TableSchema) -> list[str]:
    """``pkNames``: the primary key by the columns' flags, else the key columns."""
    flags = {column.name: named_flags(column.flags) for column in table.columns}
    if any(flags.values()):
        return [name for name, flag in flags.items() if flag & PRIMARY_KEY_FLAG]
    return list(table.key_columns)
