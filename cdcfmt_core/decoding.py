"""Decode messages to events, for bridge, CLI and tests.

:class:`MessageDecoder` selects the codec (``protocol``, or sniffed per message), runs it,
adds positions to errors, and filters.  It never raises for a message: an undecodable one becomes
a :class:`~cdcfmt_core.events.Corrupt` event.  An unreadable claim-check folder raises
:class:`~cdcfmt_core.errors.SourceError`.  With ``CDCFMT_DEBUG=1`` a decoder's bug is raised.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.codec import (
    AUTO,
    DEFAULT_MAX_MESSAGE_BYTES,
    ClaimChecks,
    CodecSpec,
    Decode,
    DecoderContext,
    Projection,
    events_of,
)
from cdcfmt_core.errors import (
    INTERRUPTIONS,
    CdcfmtError,
    DecodeError,
    MissingSchemaError,
    SourceError,
    describe,
    join_names,
)
from cdcfmt_core.event_checks import check_event
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Message, named_by
from cdcfmt_core.expansion import limit_expanded
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import Option
from cdcfmt_core.recognition import CERTAIN_ENOUGH, confidence, recognise
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.schema_registry import Framed, Part, SchemaId
from cdcfmt_core.schema_scan import open_scans
from cdcfmt_core.schemas.store import DEFAULT_MAX_SCHEMA_BYTES, SchemaStore
from cdcfmt_core.services import service
from cdcfmt_core.texts import warn_broken, warn_zoneless
from cdcfmt_core.writer_schemas import open_writer_schemas, split

DECODING_OPTIONS = (
    Option(
        name="protocol",
        default=AUTO,
        help="Name of the format, or `auto` to recognise it message by message.",
    ),
    Option(
        name="typeMap",
        help="Name of the type map to use instead of the format's own. It gives the types of type "
        "texts, and reads the values that messages have in the source's own text.",
    ),
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
        name="startingSourceTime",
        type="time",
        help="Only events at or after this time of the source: the time in commit_ts, or else "
        "source_time.",
    ),
    Option(
        name="endingSourceTime", type="time", help="Only events before this time of the source."
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
        claim_checks: ClaimChecks | None = None,
        schemas: SchemaStore | None = None,
        counts: Counter[str] | None = None,
        on_zoneless: Callable[[str, str], None] | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._registry = registry or default_registry()
        self._common = options
        self._options = codec_options
        self._type_map = options["typeMap"]
        if self._type_map is not None:
            # Fail now for an unknown map, not for each message.
            self._registry.get_type_map(self._type_map)
        self._filter = event_filter
        self._filters_nothing = event_filter == EventFilter()
        self._limit = options["maxMessageBytes"]
        if schemas is None:
            schemas = SchemaStore(options["maxCachedSchemaBytes"])
        self.writer_schemas = open_writer_schemas(options, schemas.persistence, self._registry)
        self._of_schema: dict[SchemaId, CodecSpec] = {}
        self._of_topic: Cache[str | None, CodecSpec] = Cache()
        self._counts = Counter() if counts is None else counts
        self._new_context = functools.partial(
            DecoderContext,
            schemas=schemas,
            event_filter=event_filter,
            projection=projection,
            source_time_zone=options["sourceTimeZone"],
            claim_checks=claim_checks,
            writer_schemas=self.writer_schemas,
            max_message_bytes=self._limit,
            counts=self._counts,
            on_zoneless=on_zoneless or warn_zoneless,
        )
        self._auto = options["protocol"].lower() == AUTO
        self._decoders: dict[str, Decode] = {}
        self._unusable: list[tuple[CodecSpec, CdcfmtError]] = []
        self._codecs = self._registry.codecs_of(options["protocol"])
        self._codec: CodecSpec | None = None if self._auto else self._codecs[0]
        self._last: CodecSpec | None = None
        if self._codec is not None:
            self._open(self._codec)

    @property
    def protocol(self) -> str | None:
        """The format of the last message; None if it was not recognised."""
        return self._codec.name if self._codec else None

    def codec_of(self, message: Message) -> CodecSpec | None:
        """The format of a message; None if it is not recognised or cannot be read."""
        try:
            return self._recognise(message) if self._auto else self._codecs[0]
        except DecodeError:
            return None

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
            if self._auto and value is None:
                self._codec = None
                self._codec = self._of_key(message)
            elif self._auto:
                self._codec = None
                self._codec = self._last = self._recognise(message)
                self._note_topic(message, self._last)
            if self._codec is None:
                return []
            limit_expanded(len(value or b""))
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
        except (*INTERRUPTIONS, SourceError, ImportError):
            # An unreadable folder, or a library that is not there, is not the message's fault.
            raise
        except BaseException as error:
            if not isinstance(error, DecodeError) and os.environ.get("CDCFMT_DEBUG") == "1":
                raise
            return self._corrupt(message, error)
        finally:
            limit_expanded(None)
        return events

    def _open(self, codec: CodecSpec) -> None:
        """:raises CdcfmtError: if a function of the format that reading needs fails."""
        context = self._new_context(self._registry.type_map_for(codec, self._type_map))
        own = codec.own_options(self._options)
        decode = codec.open_decoder(own, context)
        if self._auto:
            # Without its schemas, rows could have other types: the format is whole or not read.
            for _ in open_scans(codec, self._common, self._options, self._registry):
                pass
        self._decoders[codec.name] = decode

    def _of_key(self, message: Message) -> CodecSpec | None:
        """The format of a message without value: by its key's schema, else by its topic's last one.

        :raises DecodeError: if neither is known, and the message may be a row: a delete.
        """
        unknown = None
        try:
            if self.split(message, "key") is not None:
                return self._recognise(message, "key")
        except DecodeError as error:
            unknown = error
        if (known := self._of_topic.get(message.topic)) is not None:
            return known
        if unknown is not None:
            raise unknown
        if recognise(self._codecs, message) is not None:
            return self._recognise(message, "key")
        readers = [each for each in self._codecs if each is not self._last]
        found = {each.name: self._tried(each, message) for each in readers}
        if may_be := [f"{name}{text}" for name, text in found.items() if text is not None]:
            raise DecodeError(
                "a message without value, before one that shows the format of its topic: it may be "
                f"a delete of {join_names(may_be)}; set the option protocol",
                sample=message.key,
            )
        if self._last is not None:
            self._note_topic(message, self._last)
        return self._last

    def _tried(self, codec: CodecSpec, message: Message) -> str | None:
        """The problem of a message that a format would read, or ""; None if it reads others."""
        counts = Counter(self._counts)
        try:
            events = events_of(self._decoders[codec.name](message)) if self._opens(codec) else ()
            problems = [f" ({each.error.reason})" for each in events if type(each) is Corrupt]
            return "".join(problems[:1]) if events else None
        except (*INTERRUPTIONS, SourceError):
            raise
        except BaseException as error:
            # Decoders raise for messages of other formats.
            return "" if isinstance(error, MissingSchemaError) else None
        finally:
            self._counts.clear()
            self._counts.update(counts)

    def _note_topic(self, message: Message, codec: CodecSpec) -> None:
        if self._of_topic.get(message.topic) is not codec:
            self._of_topic.add(message.topic, codec, text_size(message.topic))

    def _opens(self, codec: CodecSpec) -> bool:
        """Whether a format can be read; the others go on without one that fails."""
        try:
            if codec.name not in self._decoders:
                self._open(codec)
            return True
        except CdcfmtError as error:
            warn_broken(f"format {codec.name!r} is not read:", str(error))
            self._codecs = [each for each in self._codecs if each is not codec]
            self._unusable.append((codec, error))
            return False

    def _recognise(self, message: Message, part: Part = "value") -> CodecSpec:
        last, schema, damage = self._last, None, None
        try:
            schema = None if (framed := self.split(message, part)) is None else framed.schema
        except DecodeError as error:
            # Its first bytes may be those of another format.
            damage = error
        if schema is not None and schema.id in self._of_schema:
            return self._of_schema[schema.id]
        if last is not None and confidence(last, message, schema=schema) >= CERTAIN_ENOUGH:
            return last
        while (best := recognise(self._codecs, message, schema)) is not None:
            if self._opens(best):
                if schema is not None:
                    self._of_schema[schema.id] = best
                return best
        for codec, reason in self._unusable:
            if confidence(codec, message, schema=schema) >= CERTAIN_ENOUGH:
                raise DecodeError(
                    f"the message looks like {codec.name}, which cannot be read: {reason}",
                    sample=message.value,
                )
        broken = self._registry.broken_packages()
        raise damage or service("not-recognised")(self._codecs, message, broken, schema)

    def split(self, message: Message, part: Part = "value") -> Framed | None:
        """As :func:`cdcfmt_core.writer_schemas.split`, with the writer schemas of this decoder."""
        return split(self.writer_schemas, message, part, self._codecs if self._auto else ())

    def _wanted(self, events: list[Event]) -> Iterator[Event]:
        for event in events:
            named = named_by(event)
            place = ("", "", None) if named is None else (named.database, named.table, named.schema)
            op, commit_ts = getattr(event, "op", None), getattr(event, "commit_ts", None)
            kind, time = KIND_OF[type(event)], getattr(event, "source_time", None)
            try:
                if self._filter.wants(
                    kind, *place, op=op, commit_ts=commit_ts
                ) and self._filter.wants_source_time(kind, commit_ts, time):
                    yield event
            except DecodeError as error:
                yield Corrupt(error, event.index)

    def _corrupt(self, message: Message, error: BaseException) -> list[Event]:
        if not self._filter.wants_kind("corrupt"):
            return []
        if not isinstance(error, DecodeError):
            # A decoder's bug must not end a job that runs in PERMISSIVE mode.
            error = DecodeError(f"the decoder failed: {describe(error)}", sample=message.value)
        elif not (self._auto or self._codec is None or isinstance(error, MissingSchemaError)):
            codecs, schema = self._registry.codecs().values(), None
            with contextlib.suppress(DecodeError):
                schema = None if (framed := self.split(message)) is None else framed.schema
            named: DecodeError = service("of-another-format")(
                self._codec, codecs, message, error, schema
            )
            return [Corrupt(self._locate(message, named))]
        return [Corrupt(self._locate(message, error))]

    def _locate(self, message: Message, error: DecodeError) -> DecodeError:
        return error.at(protocol=self.protocol, **message.position)
