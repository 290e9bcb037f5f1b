"""Check the events that decoders return."""

from __future__ import annotations

from typing import Any, Final

from cdcfmt_core.errors import show
from cdcfmt_core.events import KIND_OF, Image, RowChange, TableSchema
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
    :raises ValueError: if a time is not an integer, or outside the range of Spark's timestamps; for
        an unknown operation, or one with other images.
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
