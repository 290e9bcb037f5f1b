"""Events that an encoder must reject, and values that it must not make up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange
from cdcfmt_testing.damage import OTHER_VALUES
from cdcfmt_testing.limits import time_limit
from cdcfmt_testing.outcome import check_pickles, expect
from cdcfmt_testing.subject import Sample, Subject

_IMAGES: Final = ("before", "after")
# Limits, so that a format takes only seconds.
_MAX_SAMPLES: Final = 8
_MAX_COLUMNS: Final = 12


def check_absent(subject: Subject) -> None:
    """A column absent from an image is not written as NULL, and the row not as complete.

    Each column of each row of the cases is left out in turn.  The row may be rejected.
    """
    for sample, number, row in _rows(subject):
        for side in _IMAGES:
            image = getattr(row, side)
            for name in list(image.values)[:_MAX_COLUMNS] if image is not None else ():
                values = {other: value for other, value in image.values.items() if other != name}
                cut = attrs.evolve(image, values=values, complete=False, completed=())
                lacking = attrs.evolve(row, **{side: cut})
                for event in _read_again(subject, sample, _with(sample, number, lacking)):
                    _expect_absent(event, side, name, row)


def _expect_absent(event: Event, side: str, name: str, row: RowChange) -> None:
    if not isinstance(event, RowChange):
        return
    image = getattr(event, side)
    # A before image may be completed from a NULL.
    others = [getattr(row, other) for other in _IMAGES]
    was_null = any(other is not None and other.values.get(name, 0) is None for other in others)
    expect(
        image is None or was_null or image.values.get(name, "absent") is not None,
        f"column {name} is absent from the {side} image, but is read back as NULL",
    )
    if row.op != "update" and image is not None and name not in image.values:
        expect(
            not image.complete or name in event.table.column_names,
            f"column {name} is absent from the {side} image of {row.op}, but the event read back "
            "has a complete row: if the format cannot mark it incomplete, reject the row",
        )


def check_errors(subject: Subject) -> None:
    """A value that its column cannot hold raises an EncodeError that names the column.

    Or it is written; then the message can be decoded.
    """
    for sample, number, row in _rows(subject):
        side = "before" if row.op == "delete" else "after"
        image = getattr(row, side)
        if image is None:
            continue
        for name in list(image.values)[:_MAX_COLUMNS]:
            for value in (*OTHER_VALUES, object(), b"\xff", float("inf")):
                bad = attrs.evolve(image, values={**image.values, name: value})
                events = _with(sample, number, attrs.evolve(row, **{side: bad}))
                error = write(_open_encoder(subject, sample), events)
                expect(
                    not isinstance(error, EncodeError)
                    or isinstance(error, UnsupportedEventError)
                    or error.column == name,
                    f"with {value!r:.100} in column {name} the error names column "
                    f"{getattr(error, 'column', None)!r}: {error!s:.500}",
                )


def write(encoder: MessageEncoder, events: list[Event] | tuple[Event, ...]) -> object:
    """The messages, or the first EncodeError.

    :raises AssertionError: for an error that the encoder did not raise on purpose.
    """
    messages: list[Message] = []
    try:
        with time_limit("writing an event"):
            for event in events:
                messages += encoder.encode(event)
            return messages + encoder.flush()
    except EncodeError as error:
        # MessageEncoder turns any other exception into this one.
        expect(
            not error.reason.startswith("the encoder failed"),
            f"an exception other than EncodeError: {error}",
        )
        expect(error.protocol, f"an error without protocol: {error}")
        check_pickles(error)
        return error


def _rows(subject: Subject) -> Iterator[tuple[Sample, int, RowChange]]:
    """One row of some samples each, with its index among the sample's events."""
    found = 0
    for sample in subject.samples:
        if sample.case.writing is None:
            continue
        for number, event in enumerate(sample.events):
            if isinstance(event, RowChange) and found < _MAX_SAMPLES:
                found += 1
                yield sample, number, event
                break


def _with(sample: Sample, number: int, event: RowChange) -> tuple[Event, ...]:
    return (*sample.events[:number], event)


def _open_encoder(subject: Subject, sample: Sample) -> MessageEncoder:
    options = {"synthesizeCommitTs": True, **subject.writing_options(sample.case)}
    return subject.open_encoder(options)


def _read_again(subject: Subject, sample: Sample, events: tuple[Event, ...]) -> Iterator[Event]:
    """The last event, written and read back; nothing if it is rejected."""
    written = write(_open_encoder(subject, sample), events)
    if isinstance(written, list):
        decoder = subject.open_warm(sample.case)
        decoded = [event for message in written for event in decoder.decode(message)]
        for event in decoded:
            if isinstance(event, Corrupt):
                raise AssertionError(f"the written message is corrupt: {event.error}")
        yield from decoded[-1:]
