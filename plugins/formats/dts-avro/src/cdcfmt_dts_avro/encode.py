"""Encoder: events to DTS records.

Sources: ``Record.avsc`` and ``AvroRecordParser`` of the DTS subscription SDK.

A table's encode plan holds the parts of its records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.encoder import RowNumbers
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import (
    Column,
    Event,
    Heartbeat,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Transaction,
)
from cdcfmt_core.types import Decimal, Int, LogicalType, Unknown
from cdcfmt_dts_avro.message import (
    ABSENT,
    DEFAULT_SOURCE,
    EMPTY_OBJECT,
    OP_OF_OPERATION,
    OPERATIONS,
    SOURCE_TYPES,
)
from cdcfmt_dts_avro.plans import PK_TAG
from cdcfmt_dts_avro.record import DOT
from cdcfmt_dts_avro.types import NUMBER_FLAG, POSTGRESQL, Family, sources_of
from cdcfmt_dts_avro.values_output import column_template
from cdcfmt_mysql import parse_column_type, resolve_type
from cdcfmt_mysql.codes import CODE_NAMES
from cdcfmt_mysql.type_output import column_type
from cdcfmt_toolkit.images import NO_COLUMNS, images_of
from cdcfmt_toolkit.json_output import valid_name, valid_text
from cdcfmt_toolkit.message_writer import MessageWriter, RowMessageBuilder
from cdcfmt_toolkit.row_messages import (
    Choice,
    ExtraValue,
    ImageTemplate,
    Number,
    Part,
    RowMessage,
    RowMessages,
    RowNumber,
    Texts,
)
from cdcfmt_toolkit.row_rules import KernelRows
from cdcfmt_toolkit.wire_avro import (
    NULL,
    STRING,
    optional,
    write_array,
    write_long,
    write_text,
)

_ARRAY: Final = write_long(2)
_ABSENT: Final = write_long(EMPTY_OBJECT) + write_long(ABSENT)
_FAMILIES: Final[tuple[Family, ...]] = ("mysql", "postgresql", "other")

_MYSQL: Final = {
    name: number
    for number, names in reversed(CODE_NAMES.items())
    for name in (names, *names.split("/"))
    # 225 is VECTOR of TiDB, and 6 is the type of NULL.
    if number not in (6, 225)
} | {"varchar": 253, "varbinary": 253, "varchar/varbinary": 253, "decimal": 246}
"""Type numbers by the names that the decoder returns, and by MySQL's type names."""

_GEOMETRIES: Final = frozenset(
    {"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection"}
)
_POSTGRESQL: Final = {name: number for number, (name, _) in POSTGRESQL.items()}


TRANSACTION_ID: Final = ExtraValue("transaction_id", "text", write_text(""))


def record_parts(
    operation: str,
    name: str | None,
    *rest: Part,
    tags: Mapping[str, str],
    transaction_id: Part = TRANSACTION_ID,
) -> tuple[Part, ...]:
    """A record: its envelope, and ``rest``: fields and both images.

    ``name`` is ``objectName``; ``tags`` are defaults for tags that an event lacks.
    """
    zero, empty = write_long(0), write_text("")
    sources = [((source,), (write_long(number),)) for number, source in enumerate(SOURCE_TYPES)]
    return (
        ExtraValue("version", "integer", zero),
        RowNumber("id"),
        Number("executed_seconds"),
        ExtraValue("source_position", "text", empty),
        ExtraValue("safe_source_position", "text", empty),
        transaction_id,
        Choice("source_type", tuple(sources), dict(sources)[(DEFAULT_SOURCE,)]),
        ExtraValue("source_version", "text", empty),
        write_long(OPERATIONS.index(operation)),
        optional(STRING).write(name),
        ExtraValue("process_timestamps", "integers", NULL, head="\2"),
        Texts("tags", tags),
        *rest,
        ExtraValue("born_timestamp", "integer", b""),
    )


@attrs.define(eq=False)
class DtsRows(RowMessageBuilder):
    """Records of rows; ``numbers`` assigns their ids."""

    numbers: RowNumbers

    def writer(self, table: TableSchema | None = None) -> MessageWriter:
        return MessageWriter("avro", self.context, table=table, numbers=self.numbers)

    def messages(self, table: TableSchema, writer: MessageWriter) -> dict[Op, RowMessage]:
        name = object_name(table.database, table.schema, table.table)
        tags = {}
        if table.key_columns:
            keys = {"PRIMARY": list(map(valid_name, table.key_columns))}
            tags[PK_TAG] = json.dumps(keys, ensure_ascii=False)
        rows = {sources_of(family): self._rows(table, family) for family in _FAMILIES}
        errors = [parts for parts in rows.values() if isinstance(parts, EncodeError)]
        if len(errors) == len(rows):
            raise errors[0]

        def images(op: Op) -> Choice:
            """``fields`` and both images, by source type, which determines type numbers."""
            among = {
                sources: parts if isinstance(parts, EncodeError) else parts[op]
                for sources, parts in rows.items()
            }
            default = next(parts for sources, parts in among.items() if DEFAULT_SOURCE in sources)
            return Choice("source_type", tuple(among.items()), default)

        return {
            op: RowMessage(record_parts(operation, name, images(op), tags=tags), wire="avro")
            for operation, op in OP_OF_OPERATION.items()
        }

    def _rows(
        self, table: TableSchema, family: Family
    ) -> Mapping[Op, tuple[Part, ...]] | EncodeError:
        """The fields and images of rows for sources of this family."""
        fields, columns = [], {}
        for column in table.columns:
            try:
                number = _number_of(column, family)
                columns[column.name] = column_template(column, number, family, self.context)
            except EncodeError as error:
                return error.at(column=column.name)
            fields.append((valid_name(column.name), number))
        of_table = _ARRAY + write_array(fields, lambda f: write_text(f[0]) + write_long(f[1]))
        head = _ARRAY + write_long(len(columns))
        before, after = (
            ImageTemplate(image, columns, head, b"\0", NULL, separator="", absent=_ABSENT)
            for image in ("before", "after")
        )
        return {
            "insert": (of_table, NULL, after),
            "read": (of_table, NULL, after),
            "update": (of_table, before, after),
            "delete": (of_table, before, NULL),
        }


def object_name(database: str, schema: str | None, table: str) -> str:
    """``objectName``."""
    parts = [database, table] if schema is None else [database, schema, table]
    if not table:
        parts = [database]
    for part in parts:
        if DOT in valid_name(part):
            raise EncodeError(f"a name has {DOT}, which would be read as a dot", sample=part)
    return ".".join(part.replace(".", DOT) for part in parts)


def _number_of(column: Column, family: Family) -> int:
    """``dataTypeNumber``: the original number if known, otherwise that of the column's type."""
    text = column.source_type
    for flag in column.flags:
        number = flag.removeprefix(NUMBER_FLAG)
        if number != flag and number.isdecimal() and len(number) < 11:
            return int(number)
    if text.startswith("type ") and text[5:].isdecimal() and len(text) < 16:
        return int(text[5:])
    if family == "postgresql" and text in _POSTGRESQL:
        return _POSTGRESQL[text]
    if family != "mysql":
        raise EncodeError(f"{text or 'its type'} has no known type number for this source_type")
    # A name from the decoder: such a type has no length.
    if text in _MYSQL and (isinstance(column.type, Unknown) or _holds(text, column.type)):
        return _MYSQL[text]
    base = parse_column_type(text).base
    if base not in _MYSQL or not _holds(text, column.type):
        base = column_type(column).base
    if base not in _MYSQL and base not in _GEOMETRIES:
        raise EncodeError(f"DTS has no {base}")
    return 255 if base in _GEOMETRIES else _MYSQL[base]


def _holds(text: str, logical: LogicalType) -> bool:
    """Whether the decoder reads a column of type ``text`` as ``logical``.

    Integers may be read as a wider type, which holds either sign.
    """
    resolved = resolve_type(text)
    if isinstance(resolved, Int):
        if isinstance(logical, Int):
            return logical.bits >= resolved.bits
        return logical == Decimal(20, 0)
    return type(resolved) is type(logical) or text in ("enum", "set", "geometry", "bit")


_NO_HEARTBEATS: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "DDL", "BEGIN", "COMMIT", "ROLLBACK", "ABORT"}
)


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder.

    :raises OptionError: for large message options, which the format does not support.
    """
    context.large_messages.require_plain("DTS Avro")
    return _Encoder(context)


class _Encoder(KernelRows, Encoder):
    kinds = frozenset({"row", "ddl", "transaction", "heartbeat"})
    has_schema_field = True
    ops = frozenset({"insert", "update", "delete", "read"})

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self.row_numbers = numbers = RowNumbers()
        self._rows = DtsRows(context, numbers)
        self._writer = self._rows.writer()

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        return self._rows.find(table).messages

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            value = self._row(event)
        elif isinstance(event, SchemaChange):
            value = self._writer.write(self._schema_change(event), event)
        else:
            assert isinstance(event, (Transaction, Heartbeat))
            value = self._writer.write(self._border(event), event)
        return [self._context.large_messages.message(value)]

    def _row(self, event: RowChange) -> bytes:
        row, old = images_of(event)
        if not row.values:
            raise UnsupportedEventError(NO_COLUMNS)
        for image in (row, old):
            if image and not image.complete and len(image.values) == len(event.table.columns):
                raise UnsupportedEventError(
                    "the image is incomplete but lacks no column of the schema, which the format "
                    "cannot express"
                )
        _, value = self._rows.find(event.table).write(event)
        return value

    def _schema_change(self, event: SchemaChange) -> tuple[Part, ...]:
        if not event.query:
            raise UnsupportedEventError("the DDL has no statement")
        name = object_name(event.database, event.schema, event.table) or None
        query = b"\x02" + write_text(valid_text(event.query, self._context))
        return record_parts("DDL", name, NULL, NULL, query, tags={})

    def _border(self, event: Transaction | Heartbeat) -> tuple[Part, ...]:
        extra = event.extra or {}
        name = extra.get("object_name")
        original = extra.get("operation")
        transaction_id: Part = TRANSACTION_ID
        if isinstance(event, Transaction):
            is_abort = event.status == "rollback" and original == "ABORT"
            operation = "ABORT" if is_abort else event.status.upper()
            if event.transaction_id:
                transaction_id = write_text(valid_text(event.transaction_id, self._context))
        else:
            known = original in OPERATIONS and original not in _NO_HEARTBEATS
            operation = str(original) if known else "HEARTBEAT"
        name = name if isinstance(name, str) else None
        parts = NULL, NULL, NULL
        return record_parts(operation, name, *parts, tags={}, transaction_id=transaction_id)
