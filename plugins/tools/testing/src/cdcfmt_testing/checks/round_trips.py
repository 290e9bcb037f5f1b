"""Arbitrary events that are written and read again are equal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
from hypothesis import HealthCheck, Phase, given, settings

from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Corrupt, Event, Message, TableSchemaEvent
from cdcfmt_core.options import validate
from cdcfmt_testing.carries import Carries, RoundTrip
from cdcfmt_testing.limits import time_limit
from cdcfmt_testing.outcome import check_events, expect
from cdcfmt_testing.sameness import difference
from cdcfmt_testing.strategies import event_lists
from cdcfmt_testing.subject import Subject
from cdcfmt_toolkit.large_message_output import LargeMessageOutput

_EXAMPLES: Final = 25
_WIDE_EXAMPLES: Final = 4
_ZONE: Final = {"sourceTimeZone": "Asia/Shanghai"}

_settings = settings(
    deadline=None,
    database=None,
    # Shrinking a failure of such large events takes minutes.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def check_round_trip(subject: Subject, trip: RoundTrip) -> None:
    """Arbitrary events that the format carries are read back equal, or as `normalise` says."""
    carries = carried(subject, trip)
    # CDCFMT_EXAMPLES=1000 tries more examples, and different ones each time.
    more = int(os.environ.get("CDCFMT_EXAMPLES", "0"))
    failures: list[Exception] = []
    for wide, examples in ((False, _EXAMPLES), (True, _WIDE_EXAMPLES)):

        @settings(
            _settings, derandomize=not more, max_examples=more * examples // _EXAMPLES or examples
        )
        @given(events=event_lists(carries, wide=wide))
        def run(events: list[Event]) -> None:
            if failures:
                return
            try:
                with time_limit("a round trip"):
                    _there_and_back(subject, trip, events)
            except Exception as error:
                # Hypothesis would print all events instead of the difference.
                failures.append(error)

        run()
        if failures:
            raise failures[0]


def carried(subject: Subject, trip: RoundTrip) -> Carries:
    """The trip's :class:`Carries`; unset fields allow all that the encoder accepts."""
    carries = trip.carries
    open_encoder = subject.spec.open_encoder
    assert open_encoder is not None
    own = {option.name.lower() for option in subject.spec.encode_options}
    given = {name: value for name, value in trip.writing.items() if name.lower() in own}
    options = validate(given, subject.spec.encode_options, owner=f"format {subject.spec.name}")
    encoder = open_encoder(options, EncoderContext(LargeMessageOutput()))
    if carries.kinds is None:
        carries = attrs.evolve(carries, kinds=encoder.kinds & subject.spec.emits)
    if carries.ops is None:
        carries = attrs.evolve(carries, ops=tuple(sorted(encoder.ops)))
    return carries


def _there_and_back(subject: Subject, trip: RoundTrip, events: list[Event]) -> None:
    messages = _written(subject, {**_ZONE, **trip.writing}, events)
    decoder = subject.open({**_ZONE, **trip.reading})
    decoded: list[Event] = []
    for message in messages:
        found = decoder.decode(message)
        for event in found:
            if isinstance(event, Corrupt):
                raise AssertionError(f"a written message is corrupt: {event.error}: {message!r}")
        check_events(found, message, subject.spec.name)
        decoded += found
    decoded = _without_told_schemas(events, decoded)
    _check_classes(events, decoded)
    for number, (event, other) in enumerate(zip(events, decoded, strict=True)):
        wanted = trip.normalise(event, other)
        expect(
            type(wanted) is type(event),
            f"normalise returned {wanted!r:.200}: return the expected {type(event).__name__}",
        )
        found_difference = difference([wanted], [other], ("written", "read again"))
        if found_difference is not None:
            raise AssertionError(
                f"event {number + 1} of {len(events)} is different when read back:\n"
                f"{found_difference}"
            )


def _written(subject: Subject, options: Mapping[str, Any], events: list[Event]) -> list[Message]:
    encoder = subject.open_encoder(options)
    try:
        messages = [message for event in events for message in encoder.encode(event)]
    except EncodeError as error:
        raise AssertionError(
            f"an event cannot be written, but `carries` does not exclude it: {error}"
        ) from error
    return messages + encoder.flush()


def _without_told_schemas(events: Sequence[Event], decoded: Iterable[Event]) -> list[Event]:
    """The decoded events without the schemas that the encoder added before rows."""
    kept: list[Event] = []
    for event in decoded:
        wanted = events[len(kept)] if len(kept) < len(events) else None
        if not isinstance(event, TableSchemaEvent) or isinstance(wanted, TableSchemaEvent):
            kept.append(event)
    return kept


def _check_classes(events: Sequence[Event], decoded: Sequence[Event]) -> None:
    """As many events as were written, of the same classes, for comparison one by one."""
    names = [[type(event).__name__ for event in side] for side in (events, decoded)]
    expect(
        names[0] == names[1],
        f"written: {', '.join(names[0])}; read again: {', '.join(names[1]) or 'none'}",
    )
