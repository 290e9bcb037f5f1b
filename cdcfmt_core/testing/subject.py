"""The format that is tested: its spec, its cases, and decoders for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs

from cdcfmt_core.codec import CodecSpec, DecoderContext
from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder, open_message_decoder
from cdcfmt_core.events import Corrupt, Event, Message, RowChange
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.large_messages import ClaimCheckStore
from cdcfmt_core.options import validate
from cdcfmt_core.registry import Registry
from cdcfmt_core.sources.claim_checks import open_claim_check_store
from cdcfmt_core.testing.cases import Case
from cdcfmt_core.testing.event_json import events_to_json


@attrs.frozen
class Specimen:
    """A good message to be damaged, and its events."""

    case: Case
    message: Message
    events: tuple[Event, ...]

    @property
    def size(self) -> int:
        return len(self.message.key or b"") + len(self.message.value or b"")


def json_of_value(message: Message) -> Any:
    """The message's value as JSON; ValueError if it is none."""
    return json.loads(message.value or b"")


def with_json_value(message: Message, wire: Any) -> Message:
    """The message with another JSON value."""
    return attrs.evolve(message, value=json.dumps(wire).encode())


class _OneCodec(Registry):
    """What is installed, with one format alone, which need not be."""

    def __init__(self, spec: CodecSpec) -> None:
        super().__init__()
        self._spec = spec

    def get_codec(self, name: str) -> CodecSpec:
        return self._spec


class Subject:
    """A format under test.

    ``take_apart`` gives a message's content as JSON (ValueError where it is none), and
    ``put_together`` a message with other content, for wires whose JSON is in frames.
    """

    def __init__(
        self,
        spec: CodecSpec,
        cases: Iterable[Case],
        take_apart: Callable[[Message], Any] = json_of_value,
        put_together: Callable[[Message, Any], Message] = with_json_value,
    ) -> None:
        self.spec = spec
        self.registry: Registry = _OneCodec(spec)
        self.cases = tuple(cases)
        self.take_apart = take_apart
        self.put_together = put_together

    def open(self, options: Mapping[str, Any]) -> MessageDecoder:
        """A new decoder with options as users spell them."""
        common = self._common(options)
        return open_message_decoder(
            common,
            self.own_options(options),
            EventFilter(),
            claim_checks=_claim_checks(common),
            registry=self.registry,
        )

    def own_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The format's own options, validated."""
        own = {option.name.lower() for option in self.spec.options}
        given = {name: value for name, value in options.items() if name.lower() in own}
        return validate(given, self.spec.options, owner=f"format {self.spec.name}")

    def _common(self, options: Mapping[str, Any]) -> dict[str, Any]:
        own = {option.name.lower() for option in self.spec.options}
        given = {name: value for name, value in options.items() if name.lower() not in own}
        return validate({"protocol": self.spec.name, **given}, DECODING_OPTIONS, owner="cdcfmt")

    def context(self, case: Case) -> DecoderContext:
        """What the decoder of a case is given, apart from claim checks and filters."""
        common = self._common(case.options)
        return DecoderContext(
            self.registry.get_type_map(common["typeMap"] or self.spec.type_map),
            source_time_zone=common["sourceTimeZone"],
            claim_checks=_claim_checks(common),
        )

    def decode(self, case: Case) -> list[list[Event]]:
        """The events of each message of a case, by a new decoder."""
        decoder = self.open(case.options)
        return [decoder.decode(message) for message in case.messages]

    def open_warm(self, case: Case) -> MessageDecoder:
        """A decoder that has seen the messages of a case, and so knows its schemas."""
        decoder = self.open(case.options)
        for message in case.messages:
            decoder.decode(message)
        return decoder

    @cached_property
    def messages(self) -> list[tuple[Case, Message]]:
        return [(case, message) for case in self.cases for message in case.messages]

    @cached_property
    def specimens(self) -> list[Specimen]:
        """The shortest good message of each sort of events, under each case's options.

        Short ones come first, and another one of a sort only behind all other sorts.
        """
        found: dict[Any, dict[Any, Specimen]] = {}
        for case in self.cases:
            for message, events in zip(case.messages, self.decode(case), strict=True):
                if not events or any(isinstance(event, Corrupt) for event in events):
                    continue
                # Errors must repeat where the message came from.
                placed = attrs.evolve(
                    message, topic=message.topic or "t", path=None, partition=3, offset=99
                )
                specimen = Specimen(case, placed, tuple(events))
                options = tuple(sorted(case.options.items()))
                of_sort = found.setdefault((frozenset(map(_sort_of, events)), len(events) > 1), {})
                if options not in of_sort or specimen.size < of_sort[options].size:
                    of_sort[options] = specimen
        ranked = [
            (rank, specimen.size, specimen)
            for of_sort in found.values()
            for rank, specimen in enumerate(sorted(of_sort.values(), key=lambda s: s.size))
        ]
        return [specimen for _, _, specimen in sorted(ranked, key=lambda item: item[:2])]


def _claim_checks(common: Mapping[str, Any]) -> ClaimCheckStore | None:
    uri = common["claimCheckStorageUri"]
    return None if uri is None else open_claim_check_store(uri)


def _sort_of(event: Event) -> Any:
    if isinstance(event, RowChange):
        return event.op, event.before is None, event.after is None
    return type(event), getattr(event, "ddl_type", None)


def rendered(events: Iterable[Event]) -> str:
    """Events as text that is equal where they are."""
    return events_to_json([events])
