"""Messages of the real producer are written again unchanged, except for a strict list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Corrupt, Event, Message, named_by
from cdcfmt_testing.cases import Case
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.sameness import difference, rendered
from cdcfmt_testing.subject import Subject, json_of_value


def check_case(subject: Subject, case: Case, differences: Mapping[str, str]) -> None:
    """Encoding a message's events gives the same message, and decoding it the same events."""
    listed = [_pattern(place) for place in differences]
    first: dict[str, int] = {}
    for number, places in written_differently(subject, case):
        for place in places:
            if not any(pattern.fullmatch(place) for pattern in listed):
                first.setdefault(place, number)
    if first:
        lines = [f"  {place!r} (message {number})" for place, number in first.items()]
        raise AssertionError(
            f"case {case.name}: messages are written differently; if there is a reason, add it to "
            "`differences`:\n" + "\n".join(lines)
        )


def check_differences(subject: Subject, differences: Mapping[str, str]) -> None:
    """Every listed difference exists."""
    seen = {
        place
        for case in subject.cases
        for _, places in written_differently(subject, case)
        for place in places
    }
    unused = [
        listed
        for listed in differences
        if not any(_pattern(listed).fullmatch(place) for place in seen)
    ]
    expect(not unused, f"listed in `differences`, but written unchanged: {unused}")


def written_differently(subject: Subject, case: Case) -> list[tuple[int, list[str]]]:
    """The number of each message that is written differently, and the places.

    :raises AssertionError: if a message cannot be written, or then has other events.
    """
    if case.writing is None:
        return []
    cache: dict[int, list[tuple[int, list[str]]]] = subject.__dict__.setdefault("_written", {})
    if id(case) not in cache:
        cache[id(case)] = list(_written_differently(subject, case))
    return cache[id(case)]


def _written_differently(subject: Subject, case: Case) -> Iterator[tuple[int, list[str]]]:
    encoder = subject.open_encoder(subject.writing_options(case))
    decoder, other_decoder = subject.open(case.options), subject.open(case.options)
    for number, message in enumerate(case.messages):
        events = decoder.decode(message)
        if not events or any(isinstance(event, Corrupt) for event in events):
            continue
        place = f"case {case.name}, message {number}"
        before = rendered(events)
        try:
            written = [again for event in events for again in encoder.encode(event)]
        except EncodeError as error:
            raise AssertionError(f"{place} cannot be written: {error}") from error
        written += encoder.flush()
        expect(rendered(events) == before, f"{place}: the encoder modifies its input event")
        decoded = [event for again in written for event in other_decoder.decode(again)]
        found = difference(events, decoded, ("decoded", "written and decoded again"))
        if found is not None:
            raise AssertionError(f"{place} has other events after it is written:\n{found}")
        about = _about(events[0])
        if len(written) == 1:
            places = list(dict.fromkeys(_differences(subject, message, written[0])))
        else:
            places = ["number of messages"]
        if places:
            yield number, [f"{about}: {difference_}" for difference_ in places]


def _about(event: Event) -> str:
    """The event's table, or else its class."""
    named = named_by(event)
    if named is None or not named.table:
        return type(event).__name__.lower()
    return f"{named.database}.{named.table}"


def _differences(subject: Subject, message: Message, written: Message) -> Iterator[str]:
    if (message.key, message.value) == (written.key, written.value):
        if message.headers != written.headers:
            yield "headers"
        return
    found = list(_differences_in(subject.content_of, message, written))
    if message.key != written.key:
        keys = [Message(None, side.key) for side in (message, written)]
        inner = list(_differences_in(json_of_value, *keys))
        found += [f"key.{place}".rstrip(".") for place in inner] or ([] if found else ["key"])
    # Equal content may have other escapes or digits.
    yield from found or ["value"]


def _differences_in(
    content_of: Callable[[Message], Any], message: Message, written: Message
) -> Iterator[str]:
    try:
        wire, other = content_of(message), content_of(written)
    except (ValueError, TypeError):
        return
    yield from _places(wire, other, "")


def _places(wire: Any, other: Any, path: str) -> Iterator[str]:
    """Where two JSON values differ; all items of a list are one place."""
    if isinstance(wire, dict) and isinstance(other, dict):
        for name in dict.fromkeys([*wire, *other]):
            inner = f"{path}.{name}".lstrip(".")
            if name in wire and name in other:
                yield from _places(wire[name], other[name], inner)
            else:
                yield inner
        common = [name for name in wire if name in other]
        if common != [name for name in other if name in wire]:
            yield f"{path} (order)".strip()
    elif isinstance(wire, list) and isinstance(other, list) and len(wire) == len(other):
        for value, other_value in zip(wire, other, strict=True):
            yield from _places(value, other_value, f"{path}[]")
    elif type(wire) is not type(other) or wire != other:
        yield path


def _pattern(place: str) -> re.Pattern[str]:
    """A regular expression for a place, with ``*`` for any text."""
    return re.compile(".*".join(map(re.escape, place.split("*"))), re.DOTALL)
