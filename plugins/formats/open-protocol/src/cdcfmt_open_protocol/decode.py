"""Reference decoder: Open Protocol messages to events.

Sources: TiCDC Open Protocol, "Message format" and "Event format".  Not documented there: each
event value is compressed separately, and keys never are; the value of a resolved event is
empty or missing; the file of a claim check has a message with one event.

Images of a row event ("Row Changed Event"): ``u`` has the new values, ``p`` the old
values of an update, ``d`` the values of a deleted row.  ``p`` may have only the changed columns
(``only-output-updated-columns``): then absent columns are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Event, Image, Message, Op, RowChange, Watermark
from cdcfmt_core.filters import EventFilter
from cdcfmt_mysql import InexactNumber
from cdcfmt_open_protocol.ddl import schema_change
from cdcfmt_open_protocol.frames import split_key, split_value
from cdcfmt_open_protocol.message import RESOLVED, ROW, ROW_FIELDS, EventKey, extra_of, read_key
from cdcfmt_open_protocol.old_values import certain_cells
from cdcfmt_open_protocol.plans import Cells, TablePlans, check_cells
from cdcfmt_toolkit.images import before_image
from cdcfmt_toolkit.json_size import check_values
from cdcfmt_toolkit.large_messages import (
    error_of_claim_check,
    open_decompressor,
    resolve_claim_check,
)
from cdcfmt_toolkit.wire_json import loads_exact, loads_fast, loads_refused


class RowDecoder:
    """Decodes the row change of one event; fields in errors are relative to its value."""

    def __init__(
        self, context: DecoderContext, *, handle_key_deletes: bool, architecture: str
    ) -> None:
        self._plans = TablePlans(context)
        self._architecture = architecture
        self._handle_key_deletes = handle_key_deletes

    def decode(
        self,
        key: Mapping[str, Any],
        wire: Any,
        text: bytes,
        insert_op: Op,
        extra: dict[str, Any] | None,
        index: int,
    ) -> RowChange:
        """Decode a row.

        :param wire: The parsed ``text``.
        :param insert_op: The operation of a row that has only ``u``.
        :raises DecodeError: for an invalid column or value, with its name.
        :raises InexactNumber: if the text must be parsed exactly.
        """
        if type(wire) is not dict:
            raise DecodeError("not a JSON object", sample=text)
        database, table = key.get("scm") or "", key["tbl"]
        if not wire.keys() <= ROW_FIELDS:
            rest = {name: value for name, value in wire.items() if name not in ROW_FIELDS}
            extra = {**(extra or {}), **rest}
        only_handle_key = key.get("ohk") is True
        new, deleted = _cells_of(wire, "u"), _cells_of(wire, "d")
        before: Image | None = None
        after: Image | None = None
        op: Op
        if deleted:
            if new or _cells_of(wire, "p"):
                raise DecodeError("a deleted row also has new or old values", field="d")
            op = "delete"
            check_cells(deleted, "d")
            plan = self._plans.find(database, table, deleted, key["ts"])
            values = plan.read(deleted, "d")
            # The only sign of delete-only-output-handle-key-columns is a row with nothing but
            # its handle key.
            is_handle = len(plan.schema.key_columns) == len(plan.schema.columns)
            whole = not (only_handle_key or self._handle_key_deletes or is_handle)
            before = Image(values, whole)
        elif new:
            old = _cells_of(wire, "p")
            unknown: tuple[str, ...] = ()
            if old is not None:
                old, unknown = certain_cells(
                    old,
                    new,
                    text,
                    architecture=self._architecture,
                    has_row_id=key.get("rid") is not None,
                )
            op = insert_op if old is None else "update"
            # Columns only in the old row: TiCDC sends none, but the protocol allows them.
            only_old = {name: cell for name, cell in (old or {}).items() if name not in new}
            check_cells(new, "u")
            check_cells(only_old, "p")
            plan = self._plans.find(database, table, {**new, **only_old}, key["ts"])
            values = plan.read(new, "u")
            after = Image(values, not only_handle_key)
            if old is not None and plan.reads_before(old, new):
                old_values = plan.read(old, "p")
                if unknown:
                    extra = {**(extra or {}), "before_unknown": list(unknown)}
                before = before_image(old_values, values, cut=only_handle_key, unknown=unknown)
        else:
            raise DecodeError("a row event has neither new nor deleted columns", sample=text)
        return RowChange(
            op, plan.schema, before, after, commit_ts=key["ts"], index=index, extra=extra
        )


def _cells_of(wire: Mapping[str, Any], field: str) -> Cells | None:
    cells: Any = wire.get(field)
    if cells is None or type(cells) is dict:
        return cells
    raise DecodeError("is not an object", field=field, sample=cells)


_INSERT_OPS: Final[dict[str, Op | None]] = {"true": "insert", "false": "upsert", "auto": None}


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it caches the table schemas that it has seen."""
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._context = context
        self._wants_all = context.event_filter == EventFilter()
        self._wants = context.event_filter.wants
        self._limit = options["maxBatchEvents"]
        # None: detected for each message.
        self._insert_op: Op | None = _INSERT_OPS[options["oldValue"]]
        self._max_bytes = self._bytes_left = context.max_message_bytes
        self._decompress = open_decompressor(
            options["largeMessageHandleCompression"], self._max_bytes
        )
        self._rows = RowDecoder(
            context,
            handle_key_deletes=options["deleteOnlyOutputHandleKeyColumns"],
            architecture=options["ticdcArchitecture"],
        )

    def decode(self, message: Message) -> list[Event]:
        if message.key is None:
            if message.value is None:
                self._context.counts["tombstones"] += 1
                return []
            raise DecodeError(
                "a required field of the message is missing", field="key", sample=message.value
            )
        keys: list[EventKey | DecodeError] = []
        for index, frame in enumerate(split_key(message.key, self._limit)):
            try:
                keys.append(read_key(frame))
            except DecodeError as error:
                keys.append(_below(f"key[{index}]", error))
        values = self._values_of(keys, message.value)
        insert_op = self._insert_op or self._judge_inserts(keys, values)
        events: list[Event] = []
        self._bytes_left = self._max_bytes
        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            try:
                if isinstance(key, DecodeError):
                    raise key
                event = self._event(key, value, index, insert_op)
            except DecodeError as error:
                event = Corrupt(error, index)
            if event is not None:
                events.append(event)
        return events

    def _values_of(
        self, keys: list[EventKey | DecodeError], value: bytes | None
    ) -> list[memoryview | None]:
        """The value of each key; None if it has none."""
        if value is None:
            # A tombstone only deletes its key from a compacted topic; but a resolved event
            # needs no value.
            if not all(isinstance(key, dict) and key["t"] == RESOLVED for key in keys):
                self._context.counts["tombstones"] += 1
            return [None] * len(keys)
        frames: list[memoryview | None] = list(split_value(memoryview(value), self._limit))
        if len(frames) == len(keys):
            return frames
        resolved = [isinstance(key, dict) and key["t"] == RESOLVED for key in keys]
        if len(frames) == len(keys) - sum(resolved):
            rest = iter(frames)
            return [None if is_resolved else next(rest) for is_resolved in resolved]
        if keys and all(resolved) and not any(frames):
            return [None] * len(keys)
        raise DecodeError(
            f"{len(keys)} event keys and {len(frames)} event values: they cannot be matched",
            field="value",
            sample=value,
        )

    def _judge_inserts(
        self, keys: list[EventKey | DecodeError], values: list[memoryview | None]
    ) -> Op:
        """The operation of rows with only new values, by the other rows of their message."""
        self._bytes_left = self._max_bytes
        for key, value in zip(keys, values, strict=True):
            # Checks all rows, wanted or not: an operation must not depend on a filter.
            if isinstance(key, dict) and key["t"] == ROW and value and len(keys) > 1:
                try:
                    data = self._decompressed(value)
                    check_values(data, self._max_bytes)
                    wire = _loads(data)
                except DecodeError:
                    continue
                if type(wire) is dict and type(wire.get("p")) is dict:
                    return "insert"
        return "upsert"

    def _event(
        self, key: EventKey, value: memoryview | None, index: int, insert_op: Op
    ) -> Event | None:
        kind, commit_ts = key["t"], key["ts"]
        database, table = key.get("scm") or "", key.get("tbl") or ""
        field = f"value[{index}]"
        if kind == RESOLVED:
            if value is not None and bytes(value).strip(b"\0"):
                raise DecodeError("a resolved event has no value", field=field, sample=bytes(value))
            return Watermark(commit_ts, index=index, extra=extra_of(key))
        if value is None:
            return None
        kind_name = "row" if kind == ROW else "ddl"
        if not (self._wants_all or self._wants(kind_name, database, table, None, None, commit_ts)):
            return None
        try:
            data = self._text(key, value)
            wire = _loads(data)
            if kind != ROW:
                return schema_change(key, wire, extra_of(key), index)
            try:
                return self._rows.decode(key, wire, data, insert_op, extra_of(key), index)
            except InexactNumber:
                wire = loads_exact(data)
                return self._rows.decode(key, wire, data, insert_op, extra_of(key), index)
        except DecodeError as error:
            if kind == ROW and key.get("ccl"):
                raise _below(field, error_of_claim_check(error, key["ccl"])) from None
            raise _below(field, error) from error

    def _text(self, key: EventKey, value: memoryview) -> bytes:
        """An event's JSON."""
        data = self._decompressed(value)
        if key["t"] == ROW and key.get("ccl"):
            data = self._claimed(key)
        check_values(data, self._max_bytes)
        return data

    def _decompressed(self, value: memoryview) -> bytes:
        data = bytes(value)
        if self._decompress is None:
            return data
        # The limit applies to all values of a batch together.
        if self._bytes_left > 0:
            data = self._decompress(data)
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise DecodeError(
                f"the batch decompresses to more than {self._max_bytes} bytes; raise "
                "maxMessageBytes if it is real"
            )
        return data

    def _claimed(self, key: EventKey) -> bytes:
        """The complete value of a row whose message has only its handle key."""
        file_key, file_value = resolve_claim_check(
            self._context.claim_checks, key["ccl"], self._max_bytes
        )
        values = split_value(memoryview(file_value), 2)
        if len(values) != 1:
            raise DecodeError(f"it holds {len(values)} events, not 1")
        if file_key is not None:
            (claimed,) = map(read_key, split_key(file_key, 1))
            if any(claimed.get(name) != key.get(name) for name in ("ts", "scm", "tbl", "t")):
                raise DecodeError("it holds another event")
            if claimed.get("ccl"):
                raise DecodeError("it leads to another one")
        return self._decompressed(values[0])


def _loads(data: bytes) -> Any:
    try:
        return loads_fast(orjson.loads, data)
    except ValueError:
        return loads_refused(data, "")


def _below(field: str, error: DecodeError) -> DecodeError:
    """The error of a part, with its field below ``field``."""
    return error.at(field=f"{field}.{error.field}" if error.field else field)
