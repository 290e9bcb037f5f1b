"""Check the events that decoders return, and those that encoders write."""

from __future__ import annotations

from typing import Any, Final

from cdcfmt_core.errors import EncodeError, UnsupportedEventError, show
from cdcfmt_core.events import KIND_OF, Corrupt, Image, RowChange, TableSchema, named_by
from cdcfmt_core.known import formats_with_schemas
from cdcfmt_core.texts import qualified
from cdcfmt_core.types import MAX_TIMESTAMP, MIN_TIMESTAMP

IMAGES_OF_OP: Final[dict[str, tuple[bool | None, bool]]] = {
    "insert": (False, True),
    "read": (False, True),
    "upsert": (False, True),
    "update": (None, True),
    "delete": (None, False),
    "truncate": (False, False),
}
"""Whether a row of each operation has a before and an after image; None: it may have one."""

_TIMES: Final = (
    ("commit_ts", 0, (1 << 63) - 1),
    ("source_time", MIN_TIMESTAMP, MAX_TIMESTAMP),
    ("emit_time", MIN_TIMESTAMP, MAX_TIMESTAMP),
)


def check_event(event: Any) -> None:
    """Check that a decoder's result, other than ``Corrupt``, is an event with valid times.

    :raises TypeError: if it is not an event, or a row has no table schema or images.
    :raises ValueError: if a time is not an integer, or outside the years 1 to 9999; for an unknown
        operation, or one with other images.
    """
    if type(event) not in KIND_OF:
        raise TypeError(f"a {type(event).__name__} is not an event")
    if type(event) is RowChange:
        check_images(event)
    for name, low, high in _TIMES:
        time = getattr(event, name)
        if time is not None and (type(time) is not int or not low <= time <= high):
            raise ValueError(f"{show(time)} is not a valid {name}")
    if type(event.index) is not int:
        raise TypeError(f"{show(event.index)} is not a valid index")


def check_images(event: RowChange) -> None:
    """Check a row's operation, table and images.

    :raises TypeError, ValueError: as :func:`check_event`.
    """
    if event.op not in IMAGES_OF_OP:
        raise ValueError(f"{show(event.op)} is not an operation: {', '.join(IMAGES_OF_OP)}")
    if type(event.table) is not TableSchema:
        raise TypeError(f"the table of a row is {show(event.table)}, not a TableSchema")
    before, after = IMAGES_OF_OP[event.op]
    for name, image, wanted in (("before", event.before, before), ("after", event.after, after)):
        if image is None:
            if wanted:
                raise ValueError(f"an event {event.op} has no {name} image")
        elif type(image) is not Image:
            raise TypeError(f"the {name} image is {show(image)}, not an Image")
        elif wanted is False:
            raise ValueError(f"an event {event.op} has the {name} image, which it cannot have")


def locate(error: EncodeError, protocol: str, event: Any) -> EncodeError:
    """The error, with the format and the event's table and commit_ts added."""
    named = named_by(event)
    table = named and qualified(named.database, named.schema, named.table)
    if isinstance(event, Corrupt):
        error = error.at(reason=f"a message that cannot be decoded is not written ({event.error})")
    commit_ts = getattr(event, "commit_ts", None)
    return error.at(protocol=protocol, table=table or None, commit_ts=commit_ts)


def check_written(event: Any) -> None:
    """Reject events that would be written incompletely, or that no database produces.

    :raises EncodeError: for a negative commit_ts, and for an image that the operation cannot have.
    """
    commit_ts = getattr(event, "commit_ts", None)
    if type(commit_ts) is int and commit_ts < 0:
        raise EncodeError("the commit_ts is negative; leave it out if there is none")
    if type(event) is not RowChange:
        return
    allowed = IMAGES_OF_OP.get(event.op, (None, None))
    images = ("before", event.before), ("after", event.after)
    for (name, image), may_exist in zip(images, allowed, strict=True):
        if image is not None and may_exist is False:
            raise EncodeError(
                f"{event.op} has no {name} image, so it would be lost: leave it out (NULL in a "
                "table of rows), or set another op"
            )


def check_name(event: Any) -> None:
    """Reject a table name with a schema, for formats whose messages have no field for it.

    :raises UnsupportedEventError: if the event's table has a schema.
    """
    named = named_by(event)
    if named is not None and named.schema:
        *others, last = formats_with_schemas()
        raise UnsupportedEventError(
            "the table's name has a schema, which the format cannot express; write "
            f"{', '.join(others)} or {last}, or rename the table"
        )
