"""Rows of flat JSON messages, such as Canal's: a list of images, and a list of before images."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Event, Image, Op, RowChange, TableSchema

Row: TypeAlias = dict[str, Any]
"""A row of a message: column name → undecoded value."""

Images: TypeAlias = tuple[TableSchema, Image | None, Image | None]
"""A row's table schema, its before image and its after image."""


@attrs.frozen
class FlatRows:
    """The rows of one message.

    - ``op``, ``word``: the operation, and its name in the message
    - ``field``, ``rows``: name and content of the member with the rows
    - ``old_field``, ``olds``: the same for the before images of an update, one for each row; None
      or empty without before images
    """

    op: Op
    word: str
    field: str
    rows: list[Any] | None
    old_field: str
    olds: list[Any] | None

    def decode(
        self, read: Callable[[Row, str, Row | None, str], Images], **event: Any
    ) -> list[Event]:
        """The events of the rows; an invalid row becomes Corrupt and does not affect others.

        :param read: reads a row and its before image, each followed by its path for errors.
        :param event: attributes that all these row changes have.
        :raises DecodeError: without rows, and for rows that do not match their before images.
        """
        if not self.rows:
            raise DecodeError(f"a row event has no rows ({self.word})", field=self.field)
        if self.olds and len(self.olds) != len(self.rows):
            raise DecodeError(
                f"{self.field} has {len(self.rows)} rows and {self.old_field} has "
                f"{len(self.olds)}: they cannot be matched",
                field=self.old_field,
            )
        events: list[Event] = []
        for index, row in enumerate(self.rows):
            old = self.olds[index] if self.olds else None
            path, old_path = f"{self.field}[{index}]", f"{self.old_field}[{index}]"
            try:
                if type(row) is not dict:
                    raise DecodeError("is not a row", field=path, sample=row)
                if type(old) not in (dict, NoneType):
                    raise DecodeError("is not a row", field=old_path, sample=old)
                images = read(row, path, old, old_path)
                events.append(RowChange(self.op, *images, index=index, **event))
            except DecodeError as error:
                events.append(Corrupt(error, index))
        return events
