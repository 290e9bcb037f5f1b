"""Absent is not NULL, and errors name the field in the message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cdcfmt_core.events import Corrupt, Event, RowChange
from cdcfmt_testing.damage import changed, dotted, part_at, paths_of
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.subject import Subject

# Limits, so that a format takes only seconds.
_MAX_SAMPLES: Final = 12
_MAX_PATHS: Final = 100

_BAD: Final[tuple[Any, ...]] = ([], {}, -1, "x", None)


def check_absent(subject: Subject) -> None:
    """A part that is left out of a message is never read as NULL.

    Each part of each JSON message is dropped in turn; a column that had a value must not become
    NULL.
    """
    for sample, wire in subject.apart(_MAX_SAMPLES):
        rows = [event for event in sample.events if isinstance(event, RowChange)]
        if not rows:
            continue
        decoder = subject.open_warm(sample.case)
        before = dict(_values(rows))
        for path in _some(paths_of(wire)[1:]):
            if isinstance(path[-1], int):
                # The next item would take its place.
                continue
            damaged = subject.with_content(sample, changed(wire, path, ...))
            if damaged is None:
                continue
            for place, value in _values(decoder.decode(damaged)):
                expect(
                    value is not None or before.get(place) is None,
                    f"without {dotted(path)} column {place[2]} of the {place[1]} image is NULL: "
                    "leave a column that was not sent out of `values`",
                )


def _values(events: list[Event] | list[RowChange]) -> Iterator[tuple[tuple[int, str, str], Any]]:
    for event in events:
        if isinstance(event, RowChange):
            for name in ("before", "after"):
                image = getattr(event, name)
                for column, value in image.values.items() if image is not None else ():
                    yield (event.index, name, column), value


def check_fields(subject: Subject) -> None:
    """An error caused by one bad scalar names a field in the message."""
    for sample, wire in subject.apart(_MAX_SAMPLES):
        decoder = subject.open_warm(sample.case)
        for path in _some(paths_of(wire)[1:]):
            if isinstance(part_at(wire, path), (dict, list)):
                # Without it the message may not be of this format at all.
                continue
            for value in _BAD:
                damaged = subject.with_content(sample, changed(wire, path, value))
                if damaged is None:
                    continue
                for event in decoder.decode(damaged):
                    expect(
                        not isinstance(event, Corrupt) or event.error.field,
                        f"with {value!r} in {dotted(path)} the error names no `field`: "
                        f"{getattr(event, 'error', '')}",
                    )


def _some(paths: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return paths[:: max(1, len(paths) // _MAX_PATHS)]
