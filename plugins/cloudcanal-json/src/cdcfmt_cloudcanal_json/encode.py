"""Events to CloudCanal Json messages.

Source: CloudCanal "MQ message formats", CloudCanal Json; the fields stand in the order of
its examples.  A message holds one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from cdcfmt_cloudcanal_json.encode_plans import (
    EncodePlan,
    EncodePlans,
    jdbc_types,
    table_changes,
    type_texts,
)
from cdcfmt_cloudcanal_json.message import ROW_DATA, STATUS_OF_ENTRY_TYPE
from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import UnsupportedEventError
from cdcfmt_core.events import (
    Event,
    Heartbeat,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Transaction,
)
from cdcfmt_core.toolkit.images import executed_millis, images_of
from cdcfmt_core.toolkit.json_output import valid_name, valid_text, valid_texts
from cdcfmt_core.toolkit.row_messages import Members, Number, OfExtra, Part, RowMessage, RowMessages

_ACTION_OF: Final[dict[Op, str]] = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}
_HEARTBEAT: Final = "HEARTBEAT"


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder.

    :raises OptionError: for large messages, of which the format has no words.
    """
    context.large_messages.require_plain("CloudCanal Json")
    return _Encoder(options, context)


class _Encoder(Encoder):
    kinds = frozenset({"row", "ddl", "transaction", "heartbeat"})

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._plans = EncodePlans(options, context)

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        if not table.columns:
            return None
        plan = self._plans.find(table)
        return RowMessages({op: self._parts(op, plan) for op in _ACTION_OF})

    def _parts(self, op: Op, plan: EncodePlan) -> RowMessage:
        """A message of this operation, as data for the kernel."""
        before: Any = []
        if op == "update":
            before = Members("before", plan.members, "[{", "}]", missing="[]")
        fields: dict[str, Any] = self._fields(
            action=_ACTION_OF[op],
            before=before,
            bid=OfExtra("bid", "integer", "0"),
            data=Members("before" if op == "delete" else "after", plan.members, "[{", "}]"),
            dbValType=plan.db_types,
            execTs=Number("executed_millis"),
            jdbcType=plan.jdbc_types,
            pks=plan.pks,
            sendTs=Number("emit_millis"),
            sql=OfExtra("sql", "text", '""'),
            **plan.names,
        )
        parts: list[Part] = []
        for name, field in fields.items():
            is_part = isinstance(field, Members | Number | OfExtra)
            label = orjson.dumps(name) + b":"
            parts += [
                b"," + label if parts else b"{" + label,
                field if is_part else orjson.dumps(field),
            ]
        return RowMessage((*parts, "}"), wire="orjson")

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            wire = self._row(event)
        elif isinstance(event, SchemaChange):
            wire = self._schema_change(event)
        else:
            assert isinstance(event, (Transaction, Heartbeat))
            wire = self._message(event, entryType=_entry_type(event))
        return [self._context.large_messages.message(orjson.dumps(wire))]

    def _row(self, event: RowChange) -> dict[str, Any]:
        plan = self._plans.find(event.table)
        row, old = images_of(event)
        if not row.complete:
            raise UnsupportedEventError("the row is incomplete, which the format cannot express")
        if old is not None and not old.complete and row.values.keys() <= old.values.keys():
            raise UnsupportedEventError(
                "the image before the update is incomplete, which the format cannot express"
            )
        extra = event.extra or {}
        wire = self._message(
            event,
            action=_ACTION_OF[event.op],
            before=[] if old is None else [self._values(plan, old)],
            data=[self._values(plan, row)],
            pks=plan.pks,
            **plan.names,
        )
        if isinstance(extra.get("sql"), str):
            wire["sql"] = valid_text(extra["sql"], self._context)
        wire["dbValType"] = _of(plan.db_types, row)
        wire["jdbcType"] = _of(plan.jdbc_types, row)
        return wire

    def _values(self, plan: EncodePlan, image: Image) -> dict[str, Any]:
        printed = plan.print_row(image.values)
        try:
            orjson.dumps(printed)
        except TypeError:
            return valid_texts(printed, self._context)
        return printed

    def _schema_change(self, event: SchemaChange) -> dict[str, Any]:
        wire = self._message(
            event,
            action=event.ddl_type,
            isDdl=True,
            sql=valid_text(event.query, self._context),
            db=valid_name(event.database),
            schema=valid_name(event.database if event.schema is None else event.schema),
            table=valid_name(event.table),
        )
        schema = event.table_schema
        if schema is not None:
            wire["dbValType"] = type_texts(schema)
            wire["jdbcType"] = jdbc_types(schema)
            wire["tableChanges"] = table_changes(schema, event.ddl_type)
        return wire

    def _message(self, event: Any, **fields: Any) -> dict[str, Any]:
        extra = event.extra or {}
        bid = extra.get("bid")
        return (
            self._fields(
                bid=bid if type(bid) is int else 0,
                execTs=executed_millis(event),
                sendTs=self._context.emit_millis(event),
            )
            | fields
        )

    def _fields(self, **fields: Any) -> dict[str, Any]:
        """Every field, in the order of the document's examples."""
        return {
            "action": "",
            "before": [],
            "bid": 0,
            "data": [],
            "db": "",
            "dbValType": {},
            "isDdl": False,
            "entryType": ROW_DATA,
            "execTs": 0,
            "jdbcType": {},
            "pks": [],
            "schema": "",
            "sendTs": 0,
            "sql": "",
            "table": "",
        } | fields


def _of(types: Mapping[str, Any], row: Image) -> Mapping[str, Any]:
    if len(types) == len(row.values):
        return types
    return {name: type_ for name, type_ in types.items() if name in row.values}


def _entry_type(event: Transaction | Heartbeat) -> str:
    if isinstance(event, Heartbeat):
        word = (event.extra or {}).get("entry_type")
        return word if isinstance(word, str) and word not in ("", ROW_DATA) else _HEARTBEAT
    for word, status in STATUS_OF_ENTRY_TYPE.items():
        if status == event.status:
            return word
    raise UnsupportedEventError(f"the format has no {event.status}")
