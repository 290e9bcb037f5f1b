"""The format under test: its spec, its cases, and decoders for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import attrs

from cdcfmt_core import opening
from cdcfmt_core.codec import CodecSpec, DecoderContext
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Corrupt, Event, Message, RowChange
from cdcfmt_core.plugins import PluginInfo, guarded
from cdcfmt_core.registry import Registry
from cdcfmt_core.schema_scan import open_input_scan
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_testing.cases import Case
from cdcfmt_testing.damage import PARTS, changed, with_part

_NOW: Final = 1_700_000_000_000_000


@attrs.frozen
class Sample:
    """A good message to be damaged, and its events."""

    case: Case
    message: Message
    events: tuple[Event, ...]

    @property
    def size(self) -> int:
        return len(self.message.key or b"") + len(self.message.value or b"")


def json_of_value(message: Message) -> Any:
    """The message's value as JSON; ValueError if it is not JSON."""
    return json.loads((message.value or b"").decode("utf-8", "surrogateescape"))


def with_json_value(message: Message, wire: Any) -> Message:
    """The message with another JSON value."""
    return attrs.evolve(message, value=json.dumps(wire).encode())


class _OneCodec(Registry):
    """The installed plugins, but every format name is this format; it need not be installed."""

    def __init__(self, spec: CodecSpec) -> None:
        super().__init__()
        self._spec = spec

    def get_codec(self, name: str) -> CodecSpec:
        return self._spec


class Subject:
    """A format under test.

    - ``parse_wire``, ``build_wire``: get a message's content as JSON (ValueError if it is not),
      and make a message with other content, for wires whose JSON is in frames.
    - ``content_of``: the content by which two messages are compared; default ``parse_wire``.
    - ``registry_options``: options of a schema registry, for every encoder and decoder.
    """

    def __init__(
        self,
        spec: CodecSpec,
        cases: Iterable[Case],
        parse_wire: Callable[[Message], Any] = json_of_value,
        build_wire: Callable[[Message, Any], Message] = with_json_value,
        content_of: Callable[[Message], Any] | None = None,
        registry_options: Mapping[str, Any] | None = None,
    ) -> None:
        if not spec.package:
            spec = guarded(spec, PluginInfo(spec.name, spec.name, "under test"))
        self.spec = spec
        self.registry: Registry = _OneCodec(spec)
        self.cases = tuple(cases)
        self.parse_wire = parse_wire
        self.build_wire = build_wire
        self.content_of = content_of or parse_wire
        self.registry_options = dict(registry_options or {})

    def open(self, options: Mapping[str, Any]) -> MessageDecoder:
        """A new decoder with options as users spell them."""
        given = {**self.registry_options, **options}
        return opening.open_decoder(self.spec.name, given, registry=self.registry)

    def open_scan(self, options: Mapping[str, Any]) -> Callable[[Message], Iterable[object]]:
        """The format's scan of messages before decoding; finds nothing if it has none."""
        found = opening.decoding_options(self.spec.name, options, self.registry)
        return open_input_scan(*found, self.registry) or (lambda message: ())

    @property
    def writes(self) -> bool:
        """Whether the format can be written."""
        return self.spec.open_encoder is not None

    def open_encoder(self, options: Mapping[str, Any]) -> MessageEncoder:
        """A new encoder with options as users spell them, and a constant current time."""
        given = {**self.registry_options, **options}
        return opening.open_encoder(self.spec.name, given, registry=self.registry, now=lambda: _NOW)

    @staticmethod
    def writing_options(case: Case) -> dict[str, Any]:
        """The options to write a case's messages; the time zone is that of reading."""
        zone = {n: value for n, value in case.options.items() if n == "sourceTimeZone"}
        return {**zone, **(case.writing or {})}

    def own_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The format's own options, validated."""
        return opening.decoding_options(self.spec.name, options, self.registry)[1]

    def context(self, case: Case) -> DecoderContext:
        """The context for the decoder of a case, without filters."""
        common, _ = opening.decoding_options(self.spec.name, case.options, self.registry)
        return DecoderContext(
            self.registry.get_type_map(common["typeMap"] or self.spec.type_map),
            SchemaStore(),
            source_time_zone=common["sourceTimeZone"],
            claim_checks=opening.claim_check_reader(common),
            writer_schemas=self.open(case.options).writer_schemas,
        )

    def decode(self, case: Case) -> list[list[Event]]:
        """The events of each message of a case, from a new decoder."""
        decoder = self.open(case.options)
        return [decoder.decode(message) for message in case.messages]

    def open_warm(self, case: Case) -> MessageDecoder:
        """A decoder that has decoded the case's messages, and has its schemas."""
        decoder = self.open(case.options)
        for message in case.messages:
            decoder.decode(message)
        return decoder

    @cached_property
    def messages(self) -> list[tuple[Case, Message]]:
        return [(case, message) for case in self.cases for message in case.messages]

    @cached_property
    def samples(self) -> list[Sample]:
        """The shortest good message of each sort of events, for each set of case options.

        JSON and other messages are different sorts.  One of each sort comes first, then the second
        of each sort, and so on, shortest first.
        """
        found: dict[Any, dict[Any, Sample]] = {}
        for case in self.cases:
            for message, events in zip(case.messages, self.decode(case), strict=True):
                if not events or any(isinstance(event, Corrupt) for event in events):
                    continue
                # Set, as errors must name the message's position.
                placed = attrs.evolve(
                    message, topic=message.topic or "t", path=None, partition=3, offset=99
                )
                sample = Sample(case, placed, tuple(events))
                options = tuple(sorted(case.options.items()))
                sort = frozenset(map(_sort_of, events)), len(events) > 1, self.is_apart(message)
                of_sort = found.setdefault(sort, {})
                if options not in of_sort or sample.size < of_sort[options].size:
                    of_sort[options] = sample
        ranked = [
            (rank, sample.size, sample)
            for of_sort in found.values()
            for rank, sample in enumerate(sorted(of_sort.values(), key=lambda s: s.size))
        ]
        return [sample for _, _, sample in sorted(ranked, key=lambda item: item[:2])]

    def apart(self, most: int) -> Iterator[tuple[Sample, Any]]:
        """The first samples whose content is JSON, with their content."""
        for sample in self.samples[:most]:
            if self.is_apart(sample.message):
                yield sample, self.parse_wire(sample.message)

    def with_content(self, sample: Sample, wire: Any) -> Message | None:
        """The sample's message with this content; None if its wire cannot hold that content."""
        try:
            return self.build_wire(sample.message, wire)
        except (ValueError, TypeError):
            return None

    def with_json(
        self, sample: Sample, wire: Any, path: tuple[Any, ...], text: str
    ) -> Message | None:
        """The message with a JSON text at ``path`` that ``json.dumps`` would not write."""
        # A placeholder of the same length, so that lengths of frames stay right.
        text = text.ljust(40)
        mark = "a place to be filled".ljust(len(text) - 2, ".")
        message = self.with_content(sample, changed(wire, path, mark))
        if message is None:
            return None
        quoted = f'"{mark}"'.encode()
        if quoted not in (message.key or b"") + (message.value or b""):
            return None
        for part in PARTS:
            data = getattr(message, part)
            if data is not None:
                message = with_part(message, part, data.replace(quoted, text.encode()))
        return message

    def is_apart(self, message: Message) -> bool:
        """Whether the message's content is JSON."""
        try:
            self.parse_wire(message)
        except (ValueError, TypeError):
            return False
        return True


def _sort_of(event: Event) -> Any:
    if isinstance(event, RowChange):
        return event.op, event.before is None, event.after is None
    return type(event), getattr(event, "ddl_type", None)
