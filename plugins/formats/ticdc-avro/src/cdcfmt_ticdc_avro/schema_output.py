"""The Avro schemas of rows and keys, in TiCDC's form; texts have its order of members.

Source: TiCDC's ``codec/avro``; "TiCDC Avro Protocol", "Data format" and "Column data format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cdcfmt_core import types
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_mysql.text_output import unwritten_type
from cdcfmt_ticdc_avro.message import (
    BEFORE,
    CHECKSUM,
    CHECKSUM_VERSION,
    COMMIT_TS,
    CORRUPTED,
    OP,
    PHYSICAL_TIME,
)
from cdcfmt_toolkit.avro_output import BIGINTS, DECIMALS, avro_name, is_text, scale_of
from cdcfmt_toolkit.images import is_nullable
from cdcfmt_toolkit.json_output import escape_for_go, valid_name

_PARAMETERS: Final = "connect.parameters"
_PLAIN: Final[Mapping[type, tuple[str, str]]] = {
    types.Bool: ("int", "INT"),
    types.Text: ("string", "TEXT"),
    types.Binary: ("bytes", "BLOB"),
    types.Date: ("string", "DATE"),
    types.DateTime: ("string", "DATETIME"),
    types.Timestamp: ("string", "TIMESTAMP"),
    types.Time: ("string", "TIME"),
    types.Year: ("int", "YEAR"),
    types.Json: ("string", "JSON"),
    types.Vector: ("string", "TiDBVECTORFloat32"),
}


class AvroSchemas:
    """The schemas of a table; ``names``: its columns' names in Avro."""

    def __init__(
        self, options: Mapping[str, Any], table: TableSchema, names: Mapping[str, str]
    ) -> None:
        """:raises EncodeError: for a type that the format lacks; names the column."""
        self._options = options
        self._space = f"{options['namespace']}.{avro_name(valid_name(table.database))}"
        self._name = avro_name(valid_name(table.table))
        self._fields = {
            column.name: _field(
                names[column.name], self._type(column), nullable=is_nullable(column, table)
            )
            for column in table.columns
        }

    def key(self, names: Iterable[str]) -> tuple[str, str]:
        """The full name of a key's record, and its schema's text."""
        keys = set(names)
        return self._text([field for name, field in self._fields.items() if name in keys])

    def value(self) -> tuple[str, str]:
        """The full name of a row's record, and its schema's text."""
        fields = list(self._fields.values())
        extension, before = (
            self._options[name] for name in ("enableTidbExtension", "avroIncludeBeforeValue")
        )
        added = []
        if before:
            added.append(
                _field(BEFORE, self._record(f"{self._name}_before", fields), nullable=True)
            )
        if extension or before:
            added.append(_added(OP, "string", ""))
        if extension:
            added += [_added(name, "long", 0) for name in (COMMIT_TS, PHYSICAL_TIME)]
        if self._options["enableRowChecksum"]:
            added += [
                _added(CHECKSUM, "string", ""),
                _added(CORRUPTED, "boolean", False),
                _added(CHECKSUM_VERSION, "int", 0),
            ]
        return self._text(fields + added)

    def _record(self, name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
        return {"type": "record", "name": name, "namespace": self._space, "fields": fields}

    def _text(self, fields: list[dict[str, Any]]) -> tuple[str, str]:
        wire = self._record(self._name, fields)
        text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
        return f"{self._space}.{self._name}", escape_for_go(text.encode()).decode()

    def _type(self, column: Column) -> dict[str, Any]:
        logical = column.type
        as_text = is_text(logical, decimals=self._options[DECIMALS], bigints=self._options[BIGINTS])
        if isinstance(logical, types.Int):
            wide = logical.bits == 64
            name = ("BIGINT" if wide else "INT") + ("" if logical.signed else " UNSIGNED")
            is_long = wide or (logical.bits == 32 and not logical.signed)
            return _of("string" if as_text else "long" if is_long else "int", name)
        if isinstance(logical, types.Float):
            return _of(*(("float", "FLOAT") if logical.bits == 32 else ("double", "DOUBLE")))
        if isinstance(logical, types.Decimal):
            if as_text:
                return _of("string", "DECIMAL")
            precision, scale = scale_of(column)
            digits = {"logicalType": "decimal", "precision": precision, "scale": scale}
            return _of("bytes", "DECIMAL") | digits
        if isinstance(logical, types.Bit):
            return _of("bytes", "BIT", length=str(logical.bits or 64))
        if isinstance(logical, types.Enum | types.Set):
            members = [name.replace(",", "\\,") for name in logical.names or ()]
            kind = "ENUM" if isinstance(logical, types.Enum) else "SET"
            return _of("string", kind, allowed=",".join(members))
        if type(logical) not in _PLAIN:
            raise unwritten_type(logical).at(column=column.name)
        return _of(*_PLAIN[type(logical)])


def _of(avro: str, tidb: str, **parameters: str) -> dict[str, Any]:
    return {"type": avro, _PARAMETERS: parameters | {"tidb_type": tidb}}


def _added(name: str, avro: str, default: object) -> dict[str, Any]:
    return {"default": default, "name": name, "type": avro}


def _field(name: str, avro: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    if nullable:
        return {"default": None, "name": name, "type": ["null", avro]}
    return {"name": name, "type": avro}
