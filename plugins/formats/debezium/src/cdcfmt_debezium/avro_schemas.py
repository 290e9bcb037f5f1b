"""Avro schemas of rows and their keys, in the form of TiCDC's ``debezium-avro``.

Connect's names, versions and parameters stand in ``connect.name`` and so on, as in the connectors'
Avro, and the columns' own names in ``connect.field``.  Members are in alphabetical order.

Source: TiCDC's ``codec/debezium``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import Binary, Decimal
from cdcfmt_debezium.connect_output import field_of
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_toolkit.avro_output import BIGINTS, DECIMALS, avro_name, is_text
from cdcfmt_toolkit.json_output import escape_for_go, valid_name

Wire = dict[str, Any]

_TYPES: Final = {"int32": "int", "int64": "long", "struct": "record"}
_SMALL: Final = "int16"


class AvroSchemas:
    """The schemas of one table: ``names`` are its columns' names in Avro."""

    def __init__(self, cluster: str, table: TableSchema, names: Mapping[str, str]) -> None:
        parts = cluster, valid_name(table.database), table.schema
        self._space = ".".join(avro_name(part) for part in parts if part)
        self._table = avro_name(valid_name(table.table))
        self._has_schema = table.schema is not None
        self._names = names
        self._seen: set[str] = set()

    def key(self, fields: Iterable[Wire]) -> tuple[str, str]:
        """The full name and the text of a key's schema."""
        return self._schema(self._table + "Key", fields)

    def value(self, fields: Iterable[Wire]) -> tuple[str, str]:
        """The full name and the text of an envelope's schema."""
        row = f"{self._space}.{self._table}"
        images = (
            {"type": "struct", "optional": True, "name": row, "field": "before", "fields": fields},
            {"type": "struct", "optional": True, "name": row, "field": "after"},
        )
        source = {
            "type": "struct",
            "name": f"{self._space}.Source",
            "field": "source",
            "fields": source_fields(has_schema=self._has_schema),
        }
        rest = _field("string", "op"), _field("int64", "ts_ms")
        return self._schema(self._table + "Envelope", (*images, source, *rest), version=1)

    def _schema(self, name: str, fields: Iterable[Wire], **more: Any) -> tuple[str, str]:
        self._seen.clear()
        full = f"{self._space}.{name}"
        wire = self._type({"type": "struct", "name": full, "fields": fields, **more})
        text = json.dumps(wire, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return full, escape_for_go(text.encode()).decode()

    def _type(self, connect: Wire) -> Any:
        """The Avro type of a Connect schema; ``optional`` is the field's."""
        kind, name = connect["type"], connect.get("name", "")
        if kind == "struct" and name in self._seen:
            return name
        wire: Wire = {"type": _TYPES.get(kind, kind)}
        if kind == _SMALL:
            wire = {"type": "int", "connect.type": kind}
        for member in ("name", "version", "parameters"):
            if member in connect:
                wire[f"connect.{member}"] = connect[member]
        wire |= connect.get("avro", {})
        if kind == "struct":
            self._seen.add(name)
            space, _, wire["name"] = name.rpartition(".")
            wire["namespace"] = space
            wire["fields"] = [self._field(field) for field in connect["fields"]]
        return wire["type"] if len(wire) == 1 else wire

    def _field(self, connect: Wire) -> Wire:
        own = connect["field"]
        wire: Wire = {"connect.field": own, "name": self._names.get(own, own)}
        wire["type"] = self._type(connect)
        if "tidb_type" in connect:
            wire["tidb_type"] = connect["tidb_type"]
        if connect.get("optional"):
            wire |= {"type": ["null", wire["type"]], "default": None}
        return wire


def _field(kind: str, name: str, *, optional: bool = False) -> Wire:
    return {"type": kind, "field": name, "optional": optional}


def source_fields(*, has_schema: bool) -> list[Wire]:
    """The fields of ``source``; TiCDC's tables have no schema."""
    return [
        _field("string", "version"),
        _field("string", "connector"),
        _field("string", "name"),
        _field("int64", "ts_ms"),
        _field("string", "snapshot", optional=True),
        _field("string", "db"),
        *([_field("string", "schema", optional=True)] if has_schema else ()),
        _field("string", "table"),
        _field("int64", "server_id"),
        _field("string", "gtid", optional=True),
        _field("string", "file"),
        _field("int64", "pos"),
        _field("int32", "row"),
        _field("int64", "thread", optional=True),
        _field("string", "query", optional=True),
        _field("int64", "commit_ts"),
        _field("string", "cluster_id"),
    ]


VARIABLE_DECIMAL: Final[Wire] = {
    "type": "struct",
    "name": "io.debezium.data.VariableScaleDecimal",
    "version": 1,
    "fields": [_field("int32", "scale"), _field("bytes", "value")],
}


def avro_field(
    column: Column,
    parsed: ColumnType,
    options: Mapping[str, Any],
    *,
    nullable: bool,
    milliseconds: bool,
) -> Wire:
    """The Connect schema of a column in Avro; ``avro``: members that only Avro has.

    A DECIMAL of unknown scale is written as the connectors do: each value with its own.
    """
    field = field_of(
        column,
        parsed,
        nullable=nullable,
        milliseconds=milliseconds,
        tidb_type=options["enableTidbExtension"],
    )
    if is_text(column.type, decimals=options[DECIMALS], bigints=options[BIGINTS]):
        return field | {"type": "string"}
    if isinstance(column.type, Decimal):
        precision, scale = column.type.precision, column.type.scale
        if precision is None or scale is None:
            return field | VARIABLE_DECIMAL
        return field | {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"precision": str(precision), "scale": str(scale)},
            "avro": {"logicalType": "decimal", "precision": precision, "scale": scale},
        }
    return field | {"type": "bytes"} if isinstance(column.type, Binary) else field
