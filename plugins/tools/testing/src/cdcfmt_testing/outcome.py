"""The invariants of a decoder's results, for good and bad messages."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Final

from cdcfmt_core import types
from cdcfmt_core.errors import CdcfmtError, DecodeError
from cdcfmt_core.event_checks import check_images
from cdcfmt_core.events import (
    KIND_OF,
    Column,
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    TableSchemaEvent,
)
from cdcfmt_toolkit.value_checks import value_check

_MAX_SAMPLE: Final = 2_100
"""Upper bound for the characters of 200 quoted bytes."""
_MAX_REASON: Final = 10_000
_PICKLED: Final = 3


def expect(holds: object, text: str) -> None:
    """An assertion with a text; it also works under ``python -O``."""
    if not holds:
        raise AssertionError(text)


def check_events(events: Iterable[Event], message: Message, protocol: str) -> None:
    """Every event is well formed: rows match their table, errors have reason and position."""
    last = -1
    errors = 0
    for event in events:
        expect(type(event) in KIND_OF, f"{type(event).__name__} is not an event")
        expect(
            event.index > last,
            f"an event has index {event.index} after {last}: `index` is the place in the message",
        )
        last = event.index
        if isinstance(event, Corrupt):
            errors += 1
            check_error(event.error, message, protocol)
            # One message may have thousands of similar errors.
            if errors <= _PICKLED:
                check_pickles(event.error)
        elif isinstance(event, RowChange):
            check_row(event)
        elif isinstance(event, TableSchemaEvent):
            expect(event.table_schema.columns, "a table schema has no columns")
        extra = getattr(event, "extra", None)
        expect(extra is None or extra, "`extra` is empty; use None instead")


def check_error(error: DecodeError, message: Message, protocol: str | None) -> None:
    """An error has a reason and a position, and bounded length."""
    text = str(error)
    expect(type(error.reason) is str and error.reason, "an error has no reason")
    # MessageDecoder turns any other exception into this one.
    expect(
        not error.reason.startswith("the decoder failed"),
        f"an exception other than DecodeError: {text}",
    )
    expect(len(error.reason) < _MAX_REASON, f"a reason of {len(error.reason)} characters")
    expect(error.sample is None or len(error.sample) < _MAX_SAMPLE, "a sample is too long")
    expect(error.protocol == protocol, f"an error of protocol {error.protocol!r}: {text}")
    for name in ("topic", "partition", "offset"):
        given = getattr(message, name)
        expect(
            given is None or (getattr(error, name) == given and f"{name} {given}" in text),
            f"an error does not name {name} {given}: {text}",
        )


def check_pickles(error: CdcfmtError) -> None:
    """An error can be pickled, as Spark does to send it from an executor."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception as failure:
        raise AssertionError(f"{type(error).__name__} cannot be pickled: {failure!r}") from failure
    expect(
        (type(copy), str(copy), copy.__dict__) == (type(error), str(error), error.__dict__),
        f"an error changes when pickled: {error}",
    )


def check_row(event: RowChange) -> None:
    """Images match the operation and the table, values their types."""
    try:
        check_images(event)
    except (TypeError, ValueError) as error:
        raise AssertionError(str(error)) from error
    by_name = {column.name: column for column in event.table.columns}
    expect(len(by_name) == len(event.table.columns), "a table has two columns with the same name")
    for image in (event.before, event.after):
        if image is not None:
            _check_image(image, by_name)
    if event.after is not None:
        expect(not event.after.completed, "an after image is completed; only before images may be")
    if event.before is not None and event.before.completed:
        after = event.after.values if event.after is not None else {}
        for name in event.before.completed:
            expect(name in after, f"{name} is completed from an after image that lacks it")


def _check_image(image: Image, columns: Mapping[str, Column]) -> None:
    for name, value in image.values.items():
        expect(name in columns, f"an image has column {name!r}, which its table does not have")
        check_value(value, columns[name].type, f"column {name!r}")
    expect(
        set(image.completed) <= image.values.keys(),
        f"completed columns that the image lacks: {image.completed}",
    )


def check_value(value: object, logical: types.LogicalType, what: str) -> None:
    """A value is of its type, and so are the values in it; ``what`` names it in errors."""
    if value is None:
        return
    try:
        value_check(logical)(value)
    except ValueError as error:
        raise AssertionError(f"{what}: {error}") from error
