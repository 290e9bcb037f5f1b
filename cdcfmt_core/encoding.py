"""Encode events to messages: the inverse of :mod:`cdcfmt_core.decoding`; errors are raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from cdcfmt_core.codec import CodecSpec, OpenEncoder
from cdcfmt_core.encoder import Encoder, EncoderContext, RowNumbers, messages_of
from cdcfmt_core.encoding_options import ENCODING_OPTIONS, check_claim_options
from cdcfmt_core.errors import (
    CdcfmtError,
    EncodeError,
    OptionError,
    UnsupportedEventError,
    join_names,
)
from cdcfmt_core.event_checks import check_name, check_written, locate
from cdcfmt_core.events import KIND_OF, Event, Message, Op, RowChange, TableSchema, split_key_update
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.services import service
from cdcfmt_core.writer_schemas import check_registers, open_registry

__all__ = ["ENCODING_OPTIONS", "MessageEncoder"]

_T = TypeVar("_T")

MADE_COMMIT_TS: Final = "commit_ts made from source time"
"""The name of a count."""


class MessageEncoder:
    """Encodes events in one protocol, including the steps that all formats share.

    It rejects or skips what the format cannot express, adds commit_ts, splits updates of keys.
    With ``partitions`` (their number) each message gets its ``partition``; otherwise that is None,
    and a batch may hold rows of any key.

    :param options: validated :data:`ENCODING_OPTIONS`.
    :param codec_options: the format's own options, validated.
    :param claim_checks: the folder of ``claimCheckStorageUri``.
    :param now: returns microseconds.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        codec_options: Mapping[str, Any],
        *,
        claim_checks: object | None = None,
        partitions: int | None = None,
        counts: Counter[str] | None = None,
        now: Callable[[], int] | None = None,
        registry: Registry | None = None,
    ) -> None:
        """:raises OptionError: if options are incompatible, or the format is read-only."""
        registry = registry or default_registry()
        codec, open_encoder = _writable(options["protocol"], registry)
        check_claim_options(options, has_folder=claim_checks is not None)
        self._protocol = codec.name
        self._ddl_to_all = codec.ddl_partitions == "all"
        self.context = EncoderContext(
            source_time_zone=options["sourceTimeZone"],
            large_messages=service("large-messages")(
                options["maxMessageBytes"],
                options["largeMessageHandleOption"],
                options["largeMessageHandleCompression"],
                claim_checks,
            ),
            invalid_text=options["invalidText"],
            counts=Counter() if counts is None else counts,
            schema_registry=open_registry(options, registry),
        )
        if now is not None:
            self.context.now = now
        own = {option.name: codec_options[option.name] for option in codec.encode_options}
        self._open_encoder = partial(open_encoder, own, self.context)
        self._counts = self.context.counts
        self._skips = {name for name, value in options.items() if value == "skip"}
        self.splits: bool = options["splitKeyUpdates"]
        self._synthesizes = options["synthesizeCommitTs"]
        self._upsert_as = options["upsertAs"]
        self.partitions = partitions
        self.partitioner = options["partitioner"], tuple(options["partitionColumns"])
        self._partition_of = service("partitioner")(*self.partitioner, partitions or 1)
        self._last_commit_ts = RowNumbers()
        # Validate options now, not at the first event.
        self._encoder = self._open_encoder()
        check_registers(codec, self._encoder, self.context.schema_registry, registry)
        self._of_partition: dict[int, Encoder] = {0: self._encoder}
        if options.get("lineFormat") == "value" and self._encoder.needs_keys:
            raise OptionError(
                f"option lineFormat: value leaves out keys, which {codec.name} cannot be read "
                "without; set lineFormat=message"
            )

    def encode(self, event: Event) -> list[Message]:
        """The messages that this event completes, in order.

        :raises EncodeError: if it cannot be written; names protocol, table, column, value
            and what to do.
        """
        if type(event) is not RowChange:
            return self._guarded(self._other, event)
        if not self.splits:
            return self._guarded(self._row, event)
        # Each half may be skipped separately.
        parts = self._guarded(self._parts, event)
        return [message for part in parts for message in self._guarded(self._row, part)]

    def _guarded(self, function: Callable[[Any], list[_T]], event: Event) -> list[_T]:
        """``function(event)``; errors get the event's table and position."""
        try:
            check_written(event)
            if not self._encoder.has_schema_field:
                check_name(event)
            return function(event)
        except EncodeError as error:
            located, option, what = locate(error, self._protocol, event), "", error.reason
            if isinstance(error, UnsupportedEventError):
                option = "unsupportedEvents"
            elif error.column is not None:
                option, what = "unsupportedValues", f"events, for {located.table}.{error.column}"
            if option in self._skips:
                self._counts[f"skipped: {what}"] += 1
                return []
            hint = option and f"; {option}=skip leaves it out"
            raise located.at(reason=located.reason + hint) from error
        except CdcfmtError:
            # Of the schema registry, or its options.
            raise
        except Exception as error:
            failed = EncodeError(f"the encoder failed: {type(error).__name__}: {error}")
            raise locate(failed, self._protocol, event) from error

    def prepare(self, table: TableSchema, *, register: bool) -> None:
        """See :meth:`Encoder.prepare`; raises as :meth:`encode`."""

        def prepare(event: RowChange) -> list[Message]:
            self._encoder.prepare(event.table, register=register)
            return []

        self._guarded(prepare, RowChange("truncate", table, None, None))

    def flush(self) -> list[Message]:
        """The messages that are still buffered, of all partitions."""
        return [
            message
            for partition in sorted(self._of_partition)
            for message in self._sent(messages_of(self._of_partition[partition].flush()), partition)
        ]

    def _parts(self, event: RowChange) -> list[RowChange]:
        """The event, or the delete and insert that it is split into, with the same commit_ts."""
        if event.op != "update":
            return [event]
        return split_key_update(self._stamped(event), event.table.key_columns)

    def _row(self, event: RowChange) -> list[Message]:
        if event.op not in self._encoder.ops:
            event = self._renamed(event)
        event = self._stamped(event)
        if self.partitions is None:
            return messages_of(self._encoder.encode(event))
        partition = self._partition_of(event)
        return self._sent(messages_of(self._encoder_of(partition).encode(event)), partition)

    # For a compiled writer of the same messages

    def kernel_rows(self, partition: int = 0) -> Any:
        """The object of :meth:`Encoder.kernel_rows`, of the encoder for a partition."""
        return self._encoder_of(partition).kernel_rows()

    def opened_partitions(self) -> list[int]:
        """The partitions that have an encoder of their own."""
        return list(self._of_partition)

    @property
    def needs_commit_ts(self) -> bool:
        """See :class:`Encoder`; without one, and without :attr:`commit_ts`, rows are rejected."""
        return self._encoder.needs_commit_ts

    @property
    def has_schema_field(self) -> bool:
        """See :attr:`Encoder.has_schema_field`."""
        return self._encoder.has_schema_field

    @property
    def needs_keys(self) -> bool:
        """See :attr:`Encoder.needs_keys`."""
        return self._encoder.needs_keys

    @property
    def commit_ts(self) -> RowNumbers | None:
        """The largest so far, if rows get a missing one from their source time."""
        return self._last_commit_ts if self._synthesizes else None

    def written_as(self, op: Op) -> tuple[Op, str | None] | None:
        """The operation that ``op`` is written as, and the name of its count; None: unsupported."""
        ops = self._encoder.ops
        if op in ops:
            return op, None
        if op == "read" and "insert" in ops:
            return "insert", "snapshot rows written as inserts"
        if op == "upsert" and self._upsert_as in ops:
            return self._upsert_as, f"upserts written as {self._upsert_as}s"
        return None

    def _renamed(self, event: RowChange) -> RowChange:
        ops = self._encoder.ops
        if (written := self.written_as(event.op)) is not None:
            op, note = written
            if note is not None:
                self._counts[note] += 1
            return attrs.evolve(event, op=op)
        hint = "; set upsertAs" if event.op == "upsert" else ""
        raise UnsupportedEventError(
            f"the format does not support {event.op} (only {join_names(ops)}){hint}"
        )

    def _stamped(self, event: Any) -> Any:
        """The event, with a commit_ts if the format needs one."""
        if event.commit_ts is not None:
            if event.commit_ts > self._last_commit_ts.last:
                self._last_commit_ts.last = event.commit_ts
            return event
        if not self._encoder.needs_commit_ts:
            return event
        if not self._synthesizes:
            raise EncodeError(
                "the format needs a commit_ts and the event has none; with "
                "synthesizeCommitTs=true it is made from the source time"
            )
        if event.source_time is None:
            raise EncodeError("the event has no commit_ts, and no source time to make one from")
        made = max(event.source_time // 1_000 << 18, self._last_commit_ts.last + 1)
        self._last_commit_ts.last = made
        self._counts[MADE_COMMIT_TS] += 1
        return attrs.evolve(event, commit_ts=made)

    def _other(self, event: Event) -> list[Message]:
        kind = KIND_OF.get(type(event))
        if kind is None:
            raise EncodeError(f"a {type(event).__name__} is not an event")
        if kind not in self._encoder.kinds:
            hint = f"; {self._encoder.hints[kind]}" if kind in self._encoder.hints else ""
            raise UnsupportedEventError(f"the format has no {kind} events{hint}")
        if kind in ("ddl", "watermark"):
            event = self._stamped(event)
        # One copy of these is enough; other events go to every partition.
        to_first = kind in ("transaction", "message") or (kind == "ddl" and not self._ddl_to_all)
        targets = range(1 if to_first else self.partitions or 1)
        # In each partition, earlier rows must precede the event.
        result = self.flush()
        if not self._encoder.per_partition:
            messages = messages_of(self._encoder.encode(event))
            return result + [m for target in targets for m in self._sent(messages, target)]
        for target in targets:
            result += self._sent(messages_of(self._encoder_of(target).encode(event)), target)
        return result

    def _encoder_of(self, partition: int) -> Encoder:
        if not self._encoder.per_partition:
            return self._encoder
        found = self._of_partition.get(partition)
        if found is None:
            found = self._of_partition[partition] = self._open_encoder()
        return found

    def _sent(self, messages: list[Message], partition: int) -> list[Message]:
        if self.partitions is None:
            return messages
        return [attrs.evolve(message, partition=partition) for message in messages]


def _writable(protocol: str, registry: Registry) -> tuple[CodecSpec, OpenEncoder]:
    """The format, and its function that opens an encoder.

    :raises OptionError: without a name, or for a read-only format.
    """
    if not protocol:
        raise OptionError("option protocol: name the format to write")
    codec = registry.get_codec(protocol)
    if codec.open_encoder is None:
        writable = (name for name, spec in registry.codecs().items() if spec.open_encoder)
        raise OptionError(
            f"option protocol: {codec.name} cannot be written; formats that can: "
            f"{join_names(writable)}"
        )
    return codec, codec.open_encoder
