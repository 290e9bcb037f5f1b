"""Row images: read their values, and select those that an encoder writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from cdcfmt_core.errors import DecodeError, EncodeError, UnsupportedEventError
from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_mysql.json_values import InexactNumber
from cdcfmt_toolkit.row_messages import ImageTemplate, RowMessage

ReadValue: TypeAlias = Callable[[Any], Any]
"""A wire value other than NULL → the Python value of its logical type; raises ValueError."""

NO_COLUMNS: Final = "the row has no columns, which the format cannot express"

LOST_KEYS: Final = "key columns that the table lacks, left out"
"""The name of a count."""


def read_image(
    row: Mapping[str, Any], readers: Mapping[str, ReadValue], path: str
) -> dict[str, Any]:
    """The values of an image; columns without a reader are left out.

    :param path: the path of the image, for errors.
    :raises DecodeError: for a bad value; names its path.
    """
    values: dict[str, Any] = {}
    for name, value in row.items():
        read = readers.get(name)
        if read is not None:
            values[name] = None if value is None else read_value(read, value, f"{path}.{name}")
    return values


def read_value(read: ReadValue, value: Any, path: str) -> Any:
    """The value of one column; ``path``: its path, for errors.

    :raises DecodeError: for a bad value.
    """
    try:
        return read(value)
    except InexactNumber:
        raise
    except ValueError as error:
        raise DecodeError(str(error), field=path, sample=value) from error


def before_image(
    old: dict[str, Any], after: Mapping[str, Any], *, cut: bool, unknown: Sequence[str] = ()
) -> Image:
    """The before image of an update whose message lacks columns that did not change.

    :param cut: the message was reduced to its handle key, so other columns are unknown.
    :param unknown: columns that may have changed.
    """
    if cut or (not unknown and after.keys() <= old.keys()):
        return Image(old, not cut)
    completed = tuple(name for name in after if name not in old and name not in unknown)
    values = {**after, **old}
    for name in unknown:
        values.pop(name, None)
    return Image(values, not unknown, completed)


def images_of(event: RowChange) -> tuple[Image, Image | None]:
    """The image to write, and for an update also the before image.

    :raises UnsupportedEventError: if the row has no image.
    """
    row = event.before if event.op == "delete" else event.after
    if row is None:
        raise UnsupportedEventError(f"the {event.op} has no image")
    return row, event.before if event.op == "update" else None


def own_key(table: TableSchema, counts: Counter[str] | None = None) -> tuple[str, ...]:
    """The key columns that the table has; ``counts`` gets the number of the others."""
    names = set(table.column_names)
    key = tuple(name for name in table.key_columns if name in names)
    if counts is not None and len(key) < len(table.key_columns):
        counts[LOST_KEYS] += len(table.key_columns) - len(key)
    return key


def executed_millis(event: Any) -> int:
    """The milliseconds at which the source executed an event: source_time, else from commit_ts.

    :raises EncodeError: if it has neither.
    """
    if event.source_time is not None:
        return int(event.source_time // 1_000)
    commit_ts = event.commit_ts
    if commit_ts is None:
        commit_ts = getattr(event, "sequence_commit", None)
    if commit_ts is None:
        raise EncodeError(
            "the event has no source_time and no commit_ts, and the format needs a time: give "
            "events a source_time, rows of changes the column _commit_timestamp"
        )
    return int(commit_ts >> 18)


def is_nullable(column: Column, table: TableSchema) -> bool:
    """Whether a column may be written as NULL: if unknown, all columns except those of the key."""
    return column.name not in table.key_columns if column.nullable is None else column.nullable


def check_whole(
    image: Image, table: TableSchema, form: str, message: RowMessage | None = None
) -> None:
    """:raises UnsupportedEventError: for an image without some columns; ``form``: the format.

    :param message: how the row is written; columns may be missing if it has an ``unknown`` for
        them.
    """
    if image.complete and len(image.values) >= len(table.columns):
        return
    known = {
        name
        for part in (message.value if message else ())
        if isinstance(part, ImageTemplate)
        for name, column in part.columns.items()
        if column.unknown is not None
    }
    lacking = set(table.column_names) - image.values.keys()
    if not lacking or not lacking <= known:
        raise UnsupportedEventError(f"the row is incomplete, which {form} cannot express")
