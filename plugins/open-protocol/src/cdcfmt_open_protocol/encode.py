"""Events to Open Protocol messages.

Sources: TiCDC Open Protocol, "Message format" and "Event format"; how many rows go into one
message, large ones and the fields of keys are TiCDC's own (``open_protocol_encoder.go``).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import orjson

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import (
    Event,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
)
from cdcfmt_core.toolkit.images import NO_COLUMNS, images_of
from cdcfmt_core.toolkit.json_output import escape_for_go, valid_text
from cdcfmt_core.toolkit.large_message_output import KeyValue
from cdcfmt_core.toolkit.row_messages import Held, RowBatches, RowMessages
from cdcfmt_open_protocol.batches import Batch
from cdcfmt_open_protocol.ddl import ddl_code
from cdcfmt_open_protocol.encode_plans import Cells, EncodePlan, EncodePlans, table_part
from cdcfmt_open_protocol.frames import FRAMING, HEAD, framed
from cdcfmt_open_protocol.row_parts import row_message

_ONLY_HANDLE_KEY: Final = b',"ohk":true'
_INT64: Final = 1 << 63


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder of one partition."""
    return _Encoder(options, context)


class _Encoder(Encoder):
    per_partition = True
    needs_commit_ts = True
    kinds = frozenset({"row", "ddl", "watermark"})

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._large = context.large_messages
        self._old_values: bool = options["outputOldValue"]
        self._only_updated: bool = options["onlyOutputUpdatedColumns"]
        self._handle_key_deletes: bool = options["deleteOnlyOutputHandleKeyColumns"]
        self._plans = EncodePlans(context)
        self._batch = Batch(options["maxBatchSize"], self._large.max_message_bytes)
        ops: set[Op] = {"insert", "update", "delete"}
        self.ops = frozenset(ops if self._old_values else ops | {"upsert"})

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        plan = self._plans.find(table)
        if not table.columns:
            return None
        messages = {}
        for op in self.ops:
            message = row_message(
                op,
                plan,
                old_values=self._old_values,
                only_updated=self._only_updated,
                handle_key_deletes=self._handle_key_deletes,
            )
            if message is not None:
                messages[op] = message
        return RowMessages(messages)

    @property
    def row_batches(self) -> RowBatches:
        return self._batch.limits

    def take_held(self) -> Held | None:
        return self._batch.take_held()

    def hold(self, held: Held) -> None:
        self._batch.hold(held)

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return self._batch.add(*self._row(event))
        if isinstance(event, SchemaChange):
            assert event.commit_ts is not None
            key = b'{"ts":%d,%b"t":2}' % (event.commit_ts, table_part(event.database, event.table))
            query = escape_for_go(orjson.dumps(valid_text(event.query, self._context)))
            value = self._large.compressed(b'{"q":%b,"t":%d}' % (query, ddl_code(event)))
            message = Message(HEAD + framed(key), framed(value))
            self._large.check(message.key, message.value or b"")
            return [message]
        assert isinstance(event, Watermark)
        # The value of a resolved event is empty, and never compressed.
        return [Message(HEAD + framed(b'{"ts":%d,"t":3}' % event.commit_ts), framed(b""))]

    def flush(self) -> list[Message]:
        return self._batch.take()

    def _row(self, event: RowChange) -> tuple[bytes, bytes]:
        """Key and value of the event."""
        assert event.commit_ts is not None
        plan = self._plans.find(event.table)
        said = b""
        row, _ = images_of(event)
        only = None
        if event.op == "delete" and self._handle_key_deletes and row.complete:
            only = self._handle(plan)
        if not row.complete and not self._is_plainly_incomplete(event, row, plan):
            said = _ONLY_HANDLE_KEY
        key = self._key(event, plan, said)
        value = self._large.compressed(self._value(event, plan, row, only, bool(said)))
        if self._large.fits(key, value, FRAMING):
            return key, value

        def rewrite(location: str | None) -> KeyValue:
            said = _ONLY_HANDLE_KEY
            if location is not None:
                said = b',"ccl":' + escape_for_go(orjson.dumps(location))
            reduced = self._value(event, plan, row, self._handle(plan), True)
            return self._key(event, plan, said), self._large.compressed(reduced)

        whole = HEAD + framed(key), framed(value)
        new_key, value = self._large.replace((key, value), rewrite, framing=FRAMING, stored=whole)
        assert new_key is not None
        return new_key, value

    def _handle(self, plan: EncodePlan) -> tuple[str, ...]:
        if not plan.handle:
            raise EncodeError(
                "the table has no key columns to cut the row down to; raise maxMessageBytes, or "
                "leave deleteOnlyOutputHandleKeyColumns off"
            )
        return plan.handle

    def _is_plainly_incomplete(self, event: RowChange, row: Image, plan: EncodePlan) -> bool:
        """A delete of the key alone needs no mark, unless it had one."""
        return (
            event.op == "delete"
            and row.values.keys() <= set(plan.handle)
            and not (event.extra or {}).get("only_handle_key")
        ) or (event.op == "delete" and self._handle_key_deletes)

    def _key(self, event: RowChange, plan: EncodePlan, said: bytes) -> bytes:
        extra = event.extra or {}
        ids = b""
        row_id = extra.get("row_id")
        if row_id is None and plan.row_id is not None:
            image = event.after or event.before
            row_id = image.values.get(plan.row_id) if image else None
        # As Go leaves out what is zero.
        if type(row_id) is int and row_id:
            ids += b'"rid":%d,' % (row_id - 2 * _INT64 if row_id >= _INT64 else row_id)
        if type(extra.get("partition_id")) is int:
            ids += b'"ptn":%d,' % extra["partition_id"]
        return b'{"ts":%d,%b%b"t":1%b}' % (int(event.commit_ts or 0), plan.scm_tbl, ids, said)

    def _value(
        self,
        event: RowChange,
        plan: EncodePlan,
        row: Image,
        only: tuple[str, ...] | None,
        is_reduced: bool,
    ) -> bytes:
        cells = plan.cells(row.values, only)
        if not cells:
            raise UnsupportedEventError(NO_COLUMNS)
        if event.op == "delete":
            return self._dumps({"d": cells})
        if event.op != "update" or not self._old_values:
            return self._dumps({"u": cells})
        if event.before is None:
            raise UnsupportedEventError(
                "an update without old values would be read as an insert; set "
                "outputOldValue=false if the reader knows that"
            )
        old = plan.cells(event.before.values, only)
        if not is_reduced and cells.keys() - old.keys():
            raise UnsupportedEventError(
                "the image before the update lacks columns, which would mean that they did not "
                "change"
            )
        if self._only_updated:
            changed = {
                name: cell
                for name, cell in old.items()
                if name not in cells or _differ(event.before.values[name], row.values[name])
            }
            # Without any old value it would be an insert.
            old = changed or {n: cell for n, cell in old.items() if "h" in cell} or old
        return self._dumps({"u": cells, "p": old})

    def _dumps(self, row: dict[str, Cells]) -> bytes:
        try:
            data = orjson.dumps(row)
        except TypeError:
            for cells in row.values():
                for name, cell in cells.items():
                    if isinstance(cell["v"], str):
                        cell["v"] = valid_text(cell["v"], self._context, column=name)
            data = orjson.dumps(row)
        return escape_for_go(data)


def _differ(value: Any, other: Any) -> bool:
    if value != other:
        return True
    # -0.0 and 0.0 are equal, and so are 1.0 and 1.00.
    return isinstance(value, (float, Decimal)) and str(value) != str(other)
