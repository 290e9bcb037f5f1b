"""Plans, tables to skip and time zones for the kernel, from messages that it refused."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

import attrs
import orjson

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError, show
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchemaEvent,
)
from cdcfmt_core.schema_registry import Framed, Part
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine
from cdcfmt_toolkit.layout import Layout, Zoned
from cdcfmt_toolkit.zone_offsets import describe_zone
from pyspark_cdcfmt.kernel.plans import describe_plan
from pyspark_cdcfmt.kernel.settings import Shape, Unsupported
from pyspark_cdcfmt.kernel.writers import Limit

if TYPE_CHECKING:
    from cdcfmt_kernel import Kernel, Stop
    from pyspark_cdcfmt.kernel.writers import Writers

logger = open_logger("pyspark_cdcfmt")

_SAMPLE = 40
_LARGEST_EXAMPLE = 8 << 20
"""Maximum bytes of a message that is parsed again for a plan."""


class Decoder(Protocol):
    """The part of a message decoder that is used here."""

    def decode(self, message: Message) -> list[Event]: ...

    @property
    def protocol(self) -> str | None: ...


class ObservedDecoder:
    """A message decoder that remembers the events of the last message.

    :param messages: recognises and splits messages, if ``decoder`` does not.
    """

    def __init__(self, decoder: Decoder, messages: MessageDecoder | None = None) -> None:
        self._decoder = decoder
        self._messages = decoder if isinstance(decoder, MessageDecoder) else messages
        self._events: list[Event] = []

    @property
    def protocol(self) -> str | None:
        """The format of the last message."""
        return self._decoder.protocol

    def decode(self, message: Message) -> list[Event]:
        self._events = []  # release the last events first; they may be large
        self._events = self._decoder.decode(message)
        return self._events

    def forget(self) -> None:
        """Release the memory of the last message."""
        self._events = []

    def codec_of(self, message: Message) -> CodecSpec | None:
        """The format of a message, if it is recognised."""
        return None if self._messages is None else self._messages.codec_of(message)

    def split(self, message: Message, part: Part) -> Framed | None:
        """As :meth:`MessageDecoder.split`."""
        return None if self._messages is None else self._messages.split(message, part)

    def is_framed(self, message: Message) -> bool:
        """Whether a message names its writer schema, which may be unknown."""
        try:
            part: Part = "key" if message.value is None else "value"
            return self.split(message, part) is not None
        except DecodeError:
            return True

    def note_format(self, name: str) -> None:
        """Record the format of the last message, which the kernel has read."""
        if self._messages is not None:
            self._messages.note_format(name)

    def is_whole(self) -> bool:
        """Whether the last message was neither corrupt nor incomplete."""
        return not any(isinstance(event, Corrupt) for event in self._events)

    def changes(self) -> list[RowChange]:
        """The row changes of the last message; empty for a schema message."""
        if any(isinstance(event, SchemaChange | TableSchemaEvent) for event in self._events):
            return []
        return [event for event in self._events if isinstance(event, RowChange)]


@attrs.frozen
class Refusal:
    """A message of rows that the kernel left to the reference.

    - ``text``: the reason, and its place
    - ``is_value``: only the value of a ``column`` was unusual; the message fits the layout
    """

    message: Message | BadLine
    text: str
    is_value: bool
    column: str = ""


def describe_stop(stop: Stop, value: bytes) -> str:
    """Why the kernel stopped at a message: the reason, column, value encoding and position."""
    text: str = stop.text
    if stop.column is not None:
        # Plans have one name for both.
        encoding = "other or dialect-text" if stop.encoding == "other" else stop.encoding
        text += f", in the column {stop.column!r} ({encoding})"
    if stop.at is not None:
        sample = show(value[stop.at : stop.at + _SAMPLE])
        text += f", at byte {stop.at} of a message's value: {sample}"
    return text


@functools.cache
def report_panic() -> None:
    """Log, once a process, that the kernel panicked."""
    logger.error(
        "the compiled kernel has a bug: it panicked at a message, which the reference decoded. "
        'Please report it with the lines of stderr that begin with "thread"'
    )


class Learner:
    """Adds plans, tables and zones to a kernel for messages that it refused."""

    def __init__(
        self,
        kernel: Kernel,
        layouts: Sequence[Layout],
        shape: Shape,
        decoder: ObservedDecoder,
        writers: Writers | None = None,
    ) -> None:
        self._kernel = kernel
        self._layouts = layouts
        self._shape = shape
        self._decoder = decoder
        self._writers = writers
        self._opened: Message | BadLine | None = None
        self._known_schemas = shape.schemas.changes
        self._in_frames = any(layout.max_events is not None for layout in layouts)
        self._repeats_database = any(layout.repeats_database for layout in layouts)
        self._limit = Limit()
        from cdcfmt_kernel import Reason

        self._reasons = Reason
        self.refusal: str | None = None
        self.refusals: list[Refusal] | None = None

    def forget_old_plans(self) -> None:
        """Drop plans of schemas that have changed since."""
        if self._shape.schemas.changes != self._known_schemas:
            self._known_schemas = self._shape.schemas.changes
            self._kernel.clear_plans()

    def needs_finish(self) -> bool:
        """Whether the kernel stopped only because its batch is full."""
        stop = self._kernel.stop
        return stop is not None and stop.reason == self._reasons.FULL

    def opens(self, message: Message | BadLine, by_kernel: int) -> bool:
        """Whether the refused message can be read after all: its writer schemas were added.

        :param by_kernel: number of messages that the kernel has read.
        """
        stop = self._kernel.stop
        if stop is None or stop.reason != self._reasons.UNKNOWN_WRITER or self._writers is None:
            return False
        # Only once, so that a bug of the kernel cannot repeat it for ever.
        is_new = message is not self._opened
        self._opened = message
        return is_new and isinstance(message, Message) and self._writers.add(message, by_kernel)

    def skips(self, message: Message | BadLine) -> bool:
        """Whether the refused message is of an unwanted table, which the kernel then skips.

        Never for messages with a schema and a payload: the reference checks the schema.  Nor where
        layouts depend on topic and headers: it may learn from them.
        """
        stop = self._kernel.stop
        if stop is None or stop.reason != self._reasons.UNKNOWN_SCHEMA:
            return False
        if not self._is_unwanted(message):
            return False
        if any(layout.connect for layout in self._layouts):
            return False
        if self._writers is not None and self._writers.use_attributes:
            return False
        self._kernel.skip(*self._row(message), all=True)
        return True

    def is_example(self, message: Message | BadLine) -> bool:
        """Whether the refused message can give a plan."""
        stop, reasons = self._kernel.stop, self._reasons
        is_learnt = stop is not None and stop.reason in (
            reasons.UNKNOWN_SCHEMA,
            reasons.UNKNOWN_ZONE,
        )
        is_small = len(message.value or b"") <= _LARGEST_EXAMPLE
        return is_learnt and isinstance(message, Message) and is_small

    def learn(self, message: Message | BadLine, by_kernel: int) -> None:
        """Add plans or zones from a message that the reference has decoded.

        :param by_kernel: number of messages that the kernel has read.
        """
        is_unwanted = self._is_unwanted(message)
        changes = self._decoder.changes()
        if changes and not is_unwanted:
            self._add_plans(message, changes, by_kernel)
            reason = self.refusal or "no plan of its schema"
            self._add_refusal(Refusal(message, reason, is_value=False))
        elif self._decoder.is_whole():
            # The filters excluded the message.
            try:
                self._kernel.skip(*self._row(message), all=is_unwanted)
            except ValueError as error:
                logger.debug("not skipped by the kernel: %s", error)

    def note_refusal(self, message: Message | BadLine, stop: Stop | None) -> None:
        """Remember why the kernel refused the first message of rows; all, if requested."""
        if stop is not None and stop.reason == self._reasons.PANIC:
            report_panic()
        if stop is None or (self.refusal is not None and self.refusals is None):
            return
        if self._decoder.changes():
            text = describe_stop(stop, message.value or b"")
            self._note(text)
            is_value = stop.reason == self._reasons.VALUE and stop.encoding != "other"
            self._add_refusal(Refusal(message, text, is_value, stop.column or ""))

    def _add_refusal(self, refusal: Refusal) -> None:
        if self.refusals is not None:
            self.refusals.append(refusal)

    def _note(self, refusal: str) -> None:
        if self.refusal is None:
            self.refusal = refusal
            logger.debug("not by the kernel: %s", refusal)

    def _row(
        self, message: Message | BadLine, event: int | None = None
    ) -> tuple[bytes, bytes | None]:
        """Value and key of a message, or of its event at which the kernel stopped."""
        value, key = message.value or b"", getattr(message, "key", None)
        if self._in_frames:
            stop = self._kernel.stop
            stopped = stop.event if stop is not None else 0
            return self._kernel.event(value, key, stopped if event is None else event)
        return value, key

    def _is_unwanted(self, message: Message | BadLine) -> bool:
        if not self._shape.event_filter.wants_kind("row"):
            return True
        database, schema, table = self._kernel.names(*self._row(message))
        names = {schema or None}
        if schema == database and self._repeats_database:
            names.add(None)
        wants_table = self._shape.event_filter.wants_table
        return not any(wants_table(database, table, name) for name in names)

    def _add_plans(
        self, message: Message | BadLine, changes: Sequence[RowChange], by_kernel: int
    ) -> None:
        tables = {id(each.table): each for each in changes if self._shows_schema(each)}
        if len(tables) > 1 and not self._in_frames:
            self._note("its rows have several schemas")
            return
        for change in tables.values():
            table = change.table
            name = table.database, table.schema or "", table.table
            if not self._limit.allows(name, by_kernel):
                continue
            try:
                self._add_plan(message, change)
            except (Unsupported, ValueError) as error:
                self._note(str(error))
            except Exception as error:
                # An error here only costs time: the reference decodes the rows.
                reason = f"no plan for the kernel: {type(error).__name__}: {error}"
                logger.warning("%s", reason)
                self._note(reason)

    def _shows_schema(self, change: RowChange) -> bool:
        """Whether a row has all columns of its table; an event may have only its key."""
        image = change.before if change.after is None else change.after
        return image is not None and (image.complete or not self._in_frames)

    def _add_plan(self, message: Message | BadLine, change: RowChange) -> None:
        """Add the plan of a row's table schema, for messages or events like this one."""
        value, key = self._row(message, change.index)
        layout, payload = None, value
        if self._writers is not None and isinstance(message, Message):
            layout = self._writers.layout_of(message)
            payload = self._writers.payload_of(message)
            table = change.table
            if self._kernel.names(value, key) != (table.database, table.schema or "", table.table):
                # The filters would take them for others.
                raise Unsupported("the table's names are not those of the message")
        if layout is None:
            layout = self._layouts[self._kernel.layout(value, key)]
        if layout.avro is None:
            wire = orjson.loads((self._in_frames and key) or value)
        else:
            wire = json.loads(self._kernel.envelope(value, key))
        if layout.connect and "payload" in wire:
            wire = wire["payload"]
        plan = describe_plan(layout, payload, change.table, self._shape, wire)
        self._kernel.add_plan(value, key, json.dumps(plan))
        if layout.zoned is not None:
            self._add_zones(layout.zoned, value, key)

    def _add_zones(self, zoned: Zoned, value: bytes, key: bytes | None) -> None:
        """Add the time zones of a message's values."""
        known: set[str] = set()
        name = self._kernel.missing_zone(value, key)
        while name is not None and name not in known:
            known.add(name)
            zone = self._shape.policy.time_zone
            if name.lower() not in zoned.own:
                try:
                    zone = ZoneInfo(name)
                except (KeyError, OSError) as error:
                    raise Unsupported(str(error)) from error
            self._kernel.add_zone(name, json.dumps(describe_zone(zone)))
            name = self._kernel.missing_zone(value, key)
