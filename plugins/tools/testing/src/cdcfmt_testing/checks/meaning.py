"""Mistakes that an ``events.json`` would only repeat, as the decoder under test has written it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from cdcfmt_core.events import KIND_OF, Corrupt, Event, Image, Message, RowChange
from cdcfmt_core.types import Float
from cdcfmt_testing.damage import changed, dotted, part_at, paths_of
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.sameness import rendered
from cdcfmt_testing.subject import Sample, Subject

# Limits, so that a format takes only seconds.
_MAX_SAMPLES: Final = 12
_MAX_PATHS: Final = 100
_MAX_TABLES: Final = 3
_MAX_LISTS: Final = 50

_is_number = re.compile(r"-?\d+(\.\d+)?", re.ASCII).fullmatch
_DIGITS: Final = "1234567890123456789.0123456789"
_TIMES: Final[Mapping[str, tuple[Callable[[int], int], str]]] = {
    "source_time": (lambda time: time, "in microseconds"),
    "emit_time": (lambda time: time, "in microseconds"),
    "commit_ts": (
        lambda stamp: (stamp >> 18) * 1_000,
        "TiDB's TSO, whose bits from 18 on are milliseconds; another position belongs in `extra`",
    ),
}
"""How to get microseconds from a time, and what it must be."""
_BAD: Final[tuple[Any, ...]] = ([], {}, -1, "x", None)
_EARLIEST: Final = datetime(1995, 1, 1, tzinfo=UTC)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def check_null(subject: Subject) -> None:
    """A null in place of a value of an after image is read as NULL, not as absent."""
    for row, wire, path, decode in _values(subject):
        for event in decode(changed(wire, path, None)):
            values = event.after.values if event.after is not None else {}
            lost = row.after.values.keys() - values.keys()
            expect(
                len(lost) != 1 or values.keys() - row.after.values.keys(),
                f"with null in {dotted(path)} column {min(lost, default='')} is absent from the "
                "after image: NULL is the value None in `values`",
            )


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
        before = dict(_places(rows))
        for path in _some(paths_of(wire)[1:]):
            if isinstance(path[-1], int):
                # The next item would take its place.
                continue
            damaged = subject.with_content(sample, changed(wire, path, ...))
            if damaged is None:
                continue
            for place, value in _places(decoder.decode(damaged)):
                expect(
                    value is not None or before.get(place) is None,
                    f"without {dotted(path)} column {place[2]} of the {place[1]} image is NULL: "
                    "leave a column that was not sent out of `values`",
                )


def check_digits(subject: Subject) -> None:
    """A number, or its text, keeps all its digits, unless its column is a FLOAT or DOUBLE."""
    for row, wire, path, decode in _values(subject):
        found = part_at(wire, path)
        is_text = type(found) is str and _is_number(found)
        if type(found) not in (int, float) and not is_text:
            continue
        for event in decode(wire, path, f'"{_DIGITS}"' if is_text else _DIGITS):
            types = {column.name: column.type for column in event.table.columns}
            for name, value in event.after.values.items() if event.after is not None else ():
                is_new = value != row.after.values.get(name)
                expect(
                    type(value) not in (float, Decimal)
                    or not is_new
                    or isinstance(types[name], Float)
                    or value == Decimal(_DIGITS),
                    f"with {_DIGITS} in {dotted(path)} column {name} is {value!r}: parse numbers "
                    "with loads_exact, and never through a float",
                )


def check_sides(subject: Subject) -> None:
    """The decoder does not swap before and after: an insert has only after, an update both."""
    for insert, update in _pairs(subject):
        wires = [subject.parse_wire(sample.message) for sample in (insert, update)]
        decoders = [_decoder(subject, sample) for sample in (insert, update)]
        rows = [_row(sample) for sample in (insert, update)]
        for path in _scalars(wires[0]):
            if not _has(wires[1], path):
                continue
            nulls = [
                _nulls(row, decode(changed(wire, path, None)))
                for row, wire, decode in zip(rows, wires, decoders, strict=True)
            ]
            (inserted, updated), table = nulls, ".".join(rows[1].table.name)
            expect(
                not any(
                    side == "after" and ("before", name) in updated and (side, name) not in updated
                    for side, name in inserted
                ),
                f"{dotted(path)} is in the after image of an insert, and in the before image of "
                f"an update of {table}: are the images swapped?",
            )


def check_items(subject: Subject) -> None:
    """Every message has an event, and no object in a list of rows is left out.

    If the rows are others without the first object, they are so without the last one, too.
    """
    read = 0
    for case in subject.cases:
        decoder = subject.open_warm(case)
        for message, events in zip(case.messages, subject.decode(case), strict=True):
            expect(
                events or not message.value,
                f"case {case.name} has a message without an event: {message!r:.500}; if it is "
                "valid without rows, return a Heartbeat",
            )
            if read >= _MAX_LISTS or not any(isinstance(event, RowChange) for event in events):
                continue
            for path, wires in _shorter_lists(subject, message):
                read += 1
                sample = Sample(case, message, tuple(events))
                first, last = (subject.with_content(sample, wire) for wire in wires)
                if first is None or last is None:
                    continue
                found = decoder.decode(first)
                is_corrupt = any(isinstance(event, Corrupt) for event in found)
                if not is_corrupt and rendered(found) != rendered(events):
                    expect(
                        rendered(decoder.decode(last)) != rendered(events),
                        f"the events are the same without the last item of {dotted(path)}: is it "
                        f"read? {message!r:.500}",
                    )


def _shorter_lists(
    subject: Subject, message: Message
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, Any]]]:
    """Lists of objects in a message, and the message without the first, and the last of them."""
    wire = subject.parse_wire(message) if subject.is_apart(message) else None
    for path in paths_of(wire):
        items = part_at(wire, path)
        if type(items) is list and len(items) > 1 and type(items[0]) is type(items[-1]) is dict:
            first, last = (changed(wire, (*path, at), ...) for at in (0, len(items) - 1))
            yield path, (first, last)


def check_times(subject: Subject) -> None:
    """Times are microseconds, and a commit_ts is a TSO: some of each is later than 1995."""
    times: dict[tuple[str, str], int] = {}
    for event in _events(subject):
        for name, (micros_of, _) in _TIMES.items():
            time = getattr(event, name, None)
            if time is not None:
                key = KIND_OF[type(event)], name
                times[key] = max(times.get(key, 0), micros_of(time))
    for (kind, name), time in times.items():
        newest = _EPOCH + timedelta(microseconds=time)
        expect(
            newest >= _EARLIEST,
            f"the last {name} of a {kind} event is {newest.isoformat()}: it is {_TIMES[name][1]}",
        )


def check_keys(subject: Subject) -> None:
    """Some row of the cases names its key columns."""
    rows = [event for event in _events(subject) if isinstance(event, RowChange)]
    expect(
        not rows or any(row.table.key_columns for row in rows),
        "no row of the cases has `key_columns`: take them from the message or its key; if the "
        "format never names them, list this test in `known_failures`",
    )


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


def _places(events: list[Event] | list[RowChange]) -> Iterator[tuple[tuple[int, str, str], Any]]:
    for event in events:
        if isinstance(event, RowChange):
            for name in ("before", "after"):
                image = getattr(event, name)
                for column, value in image.values.items() if image is not None else ():
                    yield (event.index, name, column), value


def _events(subject: Subject) -> Iterator[Any]:
    for case in subject.cases:
        for events in subject.decode(case):
            yield from events


def _row(sample: Sample) -> Any:
    (row,) = sample.events
    return row


def _is_row(events: Sequence[Event]) -> bool:
    return len(events) == 1 and isinstance(events[0], RowChange)


def _values(subject: Subject) -> Iterator[tuple[Any, Any, tuple[Any, ...], Callable[..., Any]]]:
    """Rows with an after image, their JSON, the path of each scalar in it, and a decoder."""
    for sample, wire in subject.apart(_MAX_SAMPLES):
        if _is_row(sample.events) and _row(sample).after is not None:
            decode = _decoder(subject, sample)
            for path in _scalars(wire):
                yield _row(sample), wire, path, decode


def _decoder(subject: Subject, sample: Sample) -> Callable[..., list[RowChange]]:
    """A function from other content of a sample, and a JSON text in it, to rows."""
    decoder = subject.open_warm(sample.case)

    def decode(wire: Any, path: tuple[Any, ...] = (), text: str | None = None) -> list[RowChange]:
        if text is None:
            message = subject.with_content(sample, wire)
        else:
            message = subject.with_json(sample, wire, path, text)
        events = [] if message is None else decoder.decode(message)
        return [event for event in events if isinstance(event, RowChange)]

    return decode


def _pairs(subject: Subject) -> Iterator[tuple[Sample, Sample]]:
    """An insert and an update with both images of the same table, for a few tables."""
    found: set[tuple[str, ...]] = set()
    for case in subject.cases:
        inserts: dict[tuple[str, ...], Sample] = {}
        for message, events in zip(case.messages, subject.decode(case), strict=True):
            if not _is_row(events) or not subject.is_apart(message):
                continue
            sample = Sample(case, message, tuple(events))
            row = _row(sample)
            name = row.table.name
            if row.op == "insert":
                inserts.setdefault(name, sample)
            elif row.op == "update" and row.before and name in inserts.keys() - found:
                found.add(name)
                yield inserts[name], sample
                if len(found) == _MAX_TABLES:
                    return


def _nulls(row: RowChange, others: Sequence[RowChange]) -> set[tuple[str, str]]:
    """Image and name of each column that is NULL only in another form of a row."""
    return {
        (side, name)
        for other in others
        for side in ("before", "after")
        for name, value in _values_of(getattr(other, side)).items()
        if value is None and _values_of(getattr(row, side)).get(name) is not None
    }


def _values_of(image: Image | None) -> Mapping[str, Any]:
    return {} if image is None else image.values


def _scalars(wire: Any) -> list[tuple[Any, ...]]:
    paths = [
        path
        for path in paths_of(wire)[1:]
        if not isinstance(part_at(wire, path), dict | list) and part_at(wire, path) is not None
    ]
    return _some(paths)


def _has(wire: Any, path: tuple[Any, ...]) -> bool:
    try:
        return not isinstance(part_at(wire, path), (dict, list, type(None)))
    except (KeyError, IndexError, TypeError):
        return False


def _some(paths: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return paths[:: max(1, len(paths) // _MAX_PATHS)]
