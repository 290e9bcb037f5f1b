"""The part of an input that ``cat`` prints: by time, key, condition and columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import attrs
import click

from cdcfmt_cli.conditions import Condition
from cdcfmt_cli.records import CHANGE_COLUMNS, EVENT_COLUMNS
from cdcfmt_cli.writers import Record
from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange
from cdcfmt_core.filters import microseconds
from cdcfmt_core.options import Option
from cdcfmt_core.texts import did_you_mean
from cdcfmt_toolkit.column_names import option_names
from cdcfmt_toolkit.partitioning import key_text


def _point_in_time(_: Any, parameter: click.Parameter, text: str | None) -> int | None:
    """Microseconds since 1970."""
    return microseconds(Option(str(parameter.name), "A time.", "time").parse(text))


def _parsed(parse: Callable[[str], Any]) -> Callable[[Any, Any, str | None], Any]:
    return lambda _, __, text: None if text is None else parse(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


OPTIONS = (
    click.option(
        "--where",
        metavar="CONDITION",
        callback=_parsed(Condition),
        help="Only records for which this is true, in Spark's words: \"id = 42 AND name LIKE "
        "'a%'\". For events its names are columns of either image, or of the event.",
    ),
    click.option(
        "--key",
        metavar="VALUE,…",
        callback=_parsed(_names),
        help="Only rows with this key: the values of the key columns, in their order.",
    ),
    click.option(
        "--columns",
        metavar="NAME,…",
        callback=_parsed(_names),
        help="Only these columns of rows; those that begin with _ stay, unless some are named.",
    ),
    click.option(
        "--since",
        metavar="TIME",
        callback=_point_in_time,
        help="Only events at or after this time of the source: ISO text, UTC without a zone, or "
        "'10 minutes ago'.",
    ),
    click.option(
        "--until",
        metavar="TIME",
        callback=_point_in_time,
        help="Only events before this time of the source.",
    ),
)


@attrs.define
class Selection:
    """What is selected; a part that is None selects everything.

    Bad rows and messages have neither columns nor a time of the source: any condition leaves them
    out.
    """

    where: Condition | None = None
    key: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    since: int | None = None
    until: int | None = None
    key_columns: tuple[str, ...] = ()
    # None before a row was compared: the time may leave out all of them.
    _met_key: bool | None = None
    _other_key: tuple[str, Sequence[str]] = ("", ())
    _met_row: bool = False
    _met_bad: bool = False
    _unmet: dict[str, None] = attrs.field(init=False)
    _known: dict[str, None] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._unmet = dict.fromkeys(self.columns or ())

    @property
    def is_given(self) -> bool:
        """Whether anything is selected."""
        parts = self.where, self.key, self.columns, self.since, self.until
        return any(part is not None for part in parts)

    def has(self, event: Event, message: Message) -> bool:
        """Whether the event is of the time and key."""
        if self.since is not None or self.until is not None:
            at = _time_of(event, message)
            if at is None or (self.since is not None and at < self.since):
                return False
            if self.until is not None and at >= self.until:
                return False
        return self.key is None or self._has_key(event)

    def shows(self, record: Record) -> bool:
        """Whether the condition holds for a record, or for one image of an event."""
        if self.where is None:
            return True
        if "_corrupt_record" in record:
            self._met_bad = True
            return False
        images = [record[name] for name in ("after", "before") if name in record] or [{}]
        self._met_row = self._met_row or images != [{}] or "kind" not in record
        return any(self.where.holds({**record, **image}) for image in images)

    def narrowed(self, record: Record, *, of_event: bool) -> Record:
        """The record with the selected columns only."""
        if self.columns is None:
            return record
        if not of_event:
            keeps = not any(name in CHANGE_COLUMNS for name in self.columns)
            return {
                name: value
                for name, value in record.items()
                if (keeps and name in CHANGE_COLUMNS)
                # The reason of a bad row is always shown.
                or (name == "_corrupt_record" and value is not None)
                or self._is_shown(name)
            }
        images: Record = {}
        for name in ("before", "after"):
            if name in record:
                image = record[name].items()
                images[name] = {column: value for column, value in image if self._is_shown(column)}
        return {**record, **images}

    def check_names(self) -> None:
        """Call at the end of the input.

        :raises CdcfmtError: for a name that no record had, and for a key where no row has one.
        """
        # Where all rows are bad, their columns are unknown.
        if self.where is not None and (self._met_row or not self._met_bad):
            self.where.check_names({*EVENT_COLUMNS, *CHANGE_COLUMNS})
        if self._unmet and self._known:
            name = next(iter(self._unmet))
            raise CdcfmtError(f"--columns: no row has {name}{did_you_mean(name, self._known)}")
        if self.key is not None and self._met_key is False:
            table, names = self._other_key
            raise CdcfmtError(
                f"--key: no row has a key of as many columns as values ({len(self.key)}); "
                f"that of {table} is ({', '.join(names)}); --key-columns names other columns"
            )

    def _is_shown(self, name: str) -> bool:
        self._known[name] = None
        for each in self.columns or ():
            if each.lower() == name.lower():
                self._unmet.pop(each, None)
                return True
        return False

    def _has_key(self, event: Event) -> bool:
        if not isinstance(event, RowChange) or self.key is None:
            return False
        names = event.table.key_columns
        if self.key_columns:
            names = option_names("keyColumns", self.key_columns, event.table.column_names)
        fits = len(names) == len(self.key)
        self._met_key = bool(self._met_key) or fits
        if not fits:
            self._other_key = ".".join(event.table.name), names
            return False
        images = (image.values for image in (event.before, event.after) if image is not None)
        return any(_texts(names, values) == [*self.key] for values in images)


class LastRecords:
    """The last ``count`` records.

    The partitions of a topic are read one after the other, so its records are in the order of
    the timestamps of their messages.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._last: dict[Any, deque[tuple[int, Record]]] = {}

    def add(self, record: Record, message: Message | None) -> None:
        """``message``: that of the record, for records of a topic."""
        place = None if message is None else (message.topic, message.partition)
        time = (message and message.timestamp) or 0
        self._last.setdefault(place, deque(maxlen=self.count)).append((time, record))

    def clear(self) -> None:
        """Forget all records."""
        self._last.clear()

    def records(self) -> list[Record]:
        every = sorted(chain.from_iterable(self._last.values()), key=itemgetter(0))
        return [record for _, record in every[-self.count :]]


def _texts(names: Sequence[str], values: Mapping[str, Any]) -> list[str | None]:
    return [key_text(values[name]) if name in values else None for name in names]


def _time_of(event: Event, message: Message) -> int | None:
    """Microseconds since 1970 of an event at the source."""
    if isinstance(event, Corrupt):
        return None
    commit_ts = getattr(event, "commit_ts", None)
    if commit_ts is not None:
        return int(commit_ts >> 18) * 1000
    time: int | None = getattr(event, "source_time", None)
    if time is None and message.timestamp is not None:
        return message.timestamp * 1000
    return time


def selects(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function
