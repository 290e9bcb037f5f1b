"""Decode messages to events, for bridge, CLI and tests.

:class:`MessageDecoder` selects the codec (``protocol``, or sniffed per message), runs it,
adds positions to errors, and filters.  It never raises for a message: an undecodable one becomes
a :class:`~cdcfmt_core.events.Corrupt` event.  An unreadable claim-check folder raises
:class:`~cdcfmt_core.errors.SourceError`.  With ``CDCFMT_DEBUG=1`` a decoder's bug is raised.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cdcfmt_core.codec import (
    DEFAULT_MAX_MESSAGE_BYTES,
    CodecSpec,
    Decode,
    DecoderContext,
    Projection,
    events_of,
    open_codec,
)
from cdcfmt_core.errors import DecodeError, MissingSchemaError, SourceError
from cdcfmt_core.event_checks import check_event
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Message, named_by
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import Option
from cdcfmt_core.registry import AUTO, Registry, default_registry
from cdcfmt_core.schemas.store import DEFAULT_MAX_SCHEMA_BYTES, SchemaStore
from cdcfmt_core.texts import warn_zoneless
from cdcfmt_core.toolkit.large_messages import ClaimCheckStore
from cdcfmt_core.toolkit.recognition import (
    CERTAIN_ENOUGH,
    confidence,
    not_recognised,
    of_another_format,
    recognise,
)

DECODING_OPTIONS = (
    Option(
        name="protocol",
        default=AUTO,
        help="Name of the format, or `auto` to recognise it message by message.",
    ),
    Option(name="typeMap", help="Name of the type map to use instead of the format's own."),
    Option(
        name="sourceTimeZone",
        type="timezone",
        help="Time zone of the source's TIMESTAMP columns where the wire has none; UTC if unset.",
    ),
    Option(
        name="includeTables",
        type="list",
        default=(),
        help="Only these tables: globs over `database.table`, such as `shop.*`; case-sensitive.",
    ),
    Option(
        name="excludeTables",
        type="list",
        default=(),
        help="Without these tables: globs as in `includeTables`.",
    ),
    Option(
        name="startingCommitTs",
        type="int",
        minimum=0,
        help="Only events with at least this commit_ts.",
    ),
    Option(
        name="endingCommitTs",
        type="int",
        minimum=0,
        help="Only events with at most this commit_ts.",
    ),
    Option(
        name="claimCheckStorageUri",
        help="Folder of the claim-check files, as TiCDC's `claim-check-storage-uri`.",
    ),
    Option(
        name="maxMessageBytes",
        type="bytes",
        default=DEFAULT_MAX_MESSAGE_BYTES,
        minimum=1,
        help="Largest message, before and after decompression; a larger one is corrupt.",
    ),
    Option(
        name="maxCachedSchemaBytes",
        type="bytes",
        default=DEFAULT_MAX_SCHEMA_BYTES,
        minimum=1,
        help="Approximate memory for table schemas, for formats whose rows do not carry their "
        "column types; beyond it the least recently used table is dropped, and read "
        "again from schemaStore if that is set.",
    ),
)
"""Options with the same meaning for every format."""


class MessageDecoder:
    """Decodes messages of one protocol, or of all installed ones (``auto``).

    :param options: validated :data:`DECODING_OPTIONS`.
    :param codec_options: the formats' own options, validated; a format gets those it declares.
    :param on_zoneless: replaces the logged warning of TIMESTAMP columns without a zone.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        codec_options: Mapping[str, Any],
        event_filter: EventFilter,
        *,
        projection: Projection = Projection(),  # noqa: B008 (frozen)
        claim_checks: ClaimCheckStore | None = None,
        schemas: SchemaStore | None = None,
        counts: Counter[str] | None = None,
        on_zoneless: Callable[[str, str], None] | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._registry = registry or default_registry()
        self._options = codec_options
        self._type_map = options["typeMap"]
        self._resolver_of = functools.cache(self._registry.get_type_map)
        if self._type_map is not None:
            # Fail now for an unknown map, not for each message.
            self._resolver_of(self._type_map)
        self._filter = event_filter
        self._filters_nothing = event_filter == EventFilter()
        self._limit = options["maxMessageBytes"]
        self._new_context = functools.partial(
            DecoderContext,
            schemas=SchemaStore(options["maxCachedSchemaBytes"]) if schemas is None else schemas,
            event_filter=event_filter,
            projection=projection,
            source_time_zone=options["sourceTimeZone"],
            claim_checks=claim_checks,
            max_message_bytes=self._limit,
            counts=Counter() if counts is None else counts,
            on_zoneless=on_zoneless or warn_zoneless,
        )
        self._auto = options["protocol"].lower() == AUTO
        self._decoders: dict[str, Decode] = {}
        self._codecs = self._registry.codecs_of(options["protocol"])
        self._codec: CodecSpec | None = None if self._auto else self._codecs[0]
        self._last: CodecSpec | None = None
        if self._codec is not None:
            self._open(self._codec)

    @property
    def protocol(self) -> str | None:
        """The format of the last message; None if it was not recognised."""
        return self._codec.name if self._codec else None

    def note_format(self, name: str) -> None:
        """Set the format of the last message, which was decoded elsewhere."""
        if not self._auto:
            return
        if self._last is None or self._last.name != name:
            self._last = next(codec for codec in self._codecs if codec.name == name)
            if name not in self._decoders:
                self._open(self._last)
        self._codec = self._last

    def decode(self, message: Message) -> list[Event]:
        """The wanted events of one message, in order."""
        value = message.value
        try:
            if value is not None and len(value) > self._limit:
                raise DecodeError(
                    f"the message has {len(value)} bytes, more than {self._limit}; raise "
                    "maxMessageBytes if it is real"
                )
            if self._auto:
                # A message without value is assumed to have the last recognised format.
                self._codec = self._last if value is None else None
                if value is not None:
                    self._codec = self._last = self._recognise(message)
            if self._codec is None:
                return []
            events = self._decoders[self._codec.name](message)
            if type(events) is not list:
                events = events_of(events)
            if not self._filters_nothing:
                events = list(self._wanted(events))
            for event in events:
                if type(event) is Corrupt:
                    event.error = self._locate(message, event.error)
                else:
                    check_event(event)
        except SourceError:
            # An unreadable folder is not the message's fault.
            raise
        except Exception as error:
            if not isinstance(error, DecodeError) and os.environ.get("CDCFMT_DEBUG") == "1":
                raise
            return self._corrupt(message, error)
        return events

    def _open(self, codec: CodecSpec) -> None:
        context = self._new_context(self._resolver_of(self._type_map or codec.type_map))
        own = codec.own_options(self._options)
        self._decoders[codec.name] = open_codec(codec, own, context)

    def _recognise(self, message: Message) -> CodecSpec:
        last = self._last
        if last is not None and confidence(last, message) >= CERTAIN_ENOUGH:
            return last
        best = recognise(self._codecs, message)
        if best is None:
            raise not_recognised(self._codecs, message)
        if best.name not in self._decoders:
            self._open(best)
        return best

    def _wanted(self, events: list[Event]) -> Iterator[Event]:
        for event in events:
            named = named_by(event)
            place = ("", "", None) if named is None else (named.database, named.table, named.schema)
            op, commit_ts = getattr(event, "op", None), getattr(event, "commit_ts", None)
            try:
                if self._filter.wants(KIND_OF[type(event)], *place, op=op, commit_ts=commit_ts):
                    yield event
            except DecodeError as error:
                yield Corrupt(error, event.index)

    def _corrupt(self, message: Message, error: Exception) -> list[Event]:
        if not self._filter.wants_kind("corrupt"):
            return []
        if not isinstance(error, DecodeError):
            # A decoder's bug must not end a job that runs in PERMISSIVE mode.
            error = DecodeError(
                f"the decoder failed: {type(error).__name__}: {error}", sample=message.value
            )
        elif not (self._auto or self._codec is None or isinstance(error, MissingSchemaError)):
            codecs = self._registry.codecs().values()
            error = of_another_format(self._codec, codecs, message, error)
        return [Corrupt(self._locate(message, error))]

    def _locate(self, message: Message, error: DecodeError) -> DecodeError:
        return error.at(protocol=self.protocol, **message.position)
