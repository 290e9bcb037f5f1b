"""``cdcfmt cat``: events, or one table's changes, as JSON Lines, CSV or a table."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import attrs
import click

from cdcfmt_cli.console import note
from cdcfmt_cli.inputs import open_input
from cdcfmt_cli.interruption import until_interrupted
from cdcfmt_cli.parameters import declare, numbers_option, reads
from cdcfmt_cli.printing import number
from cdcfmt_cli.progress import no_bars
from cdcfmt_cli.reading import Decoded, Reader, note_corrupt
from cdcfmt_cli.records import CHANGE_COLUMNS, EVENT_COLUMNS, change_records, event_record
from cdcfmt_cli.selection import LastRecords, Selection, selects
from cdcfmt_cli.settings import Settings
from cdcfmt_cli.tables import write_changes, write_events
from cdcfmt_cli.writers import Record, write_csv, write_json
from cdcfmt_core.errors import CdcfmtError, MissingSchemaError, OptionError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange, SchemaChange, TableSchema
from cdcfmt_core.options import Option
from cdcfmt_core.registry import default_registry
from cdcfmt_toolkit.column_names import UnitedNames, lacking
from cdcfmt_toolkit.inputs import Slice
from cdcfmt_toolkit.repeats import limited

OPTIONS = (
    Option(
        name="table",
        help="`database.table` or `database.schema.table`, exact case: the changes of that table "
        "instead of events. Put a part with a dot or blank in backticks.",
    ),
    Option(
        name="images",
        type="choice",
        choices=("both", "after", "none"),
        default="both",
        help="`after`: one row per change, without before images of updates. "
        "`none`: events without images.",
    ),
    Option(
        name="keyColumns",
        type="list",
        default=(),
        help="Columns that identify a row, instead of the key columns of the messages.",
    ),
)

_TABLE_ROWS = 100
_LEAST_END = 200
"""Number of offsets at the end of a partition that one request brings."""
_FORMATS = ("json", "csv", "table")


class _Output(click.Choice[str]):
    """The format of the output, which is not that of the messages."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        text = super().get_invalid_choice_message(value, ctx)
        if str(value).lower() in default_registry().codecs():
            text += f" --protocol {value} names the format of the messages."
        return text


@declare("cat", "Events or changes as JSON Lines, CSV, table.")
@reads(OPTIONS, section="Shape", aliases={})
@click.option(
    "-f",
    "--format",
    "output",
    type=_Output(_FORMATS),
    default="json",
    show_default=True,
    help="JSON Lines, CSV with a header, or a table for people.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    help=f"Maximum number of rows; a table shows {_TABLE_ROWS} by default.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Topics: wait for new messages; startingOffsets defaults to the end of the topic.",
)
@selects
@click.option(
    "--tail",
    type=click.IntRange(min=1),
    help="Only the last rows; those of topics, by the time of their messages, are looked for from "
    "the ends of their partitions.",
)
@numbers_option
def command(
    paths: tuple[str, ...],
    settings: Settings,
    output: str,
    limit: int | None,
    follow: bool,
    tail: int | None,
    numbers: str,
    **selected: Any,
) -> None:
    """Print the events of INPUT, or with --table the typed changes of one table.

    A message that cannot be decoded is a record with the reason in _corrupt_record.
    """
    if settings.table is not None and settings["images"] == "none":
        raise OptionError("option images: none is for events; leave --table out")
    no_bars(streams=output != "table")
    if follow and output == "table":
        raise OptionError("--follow never ends, but a table is printed at the end: use -f json")
    if tail is not None and (follow or limit is not None):
        raise OptionError("--tail is for inputs that end, and without --limit")
    source = open_input(paths, settings, follow=follow)
    reader = Reader(source, settings, follows_kind=True)
    selection = Selection(**selected, key_columns=tuple(settings["keyColumns"]))
    rows = _Rows(reader, settings, selection, again=source.again)

    most = tail or limit or _TABLE_ROWS
    held: list[Record] = []
    last = LastRecords(tail or 1)
    header: list[str] = []

    def write(records: Iterable[Record]) -> None:
        if output == "json":
            write_json(records, live=source.live, numbers=numbers)
        elif output == "csv":
            if header and "_corrupt_record" not in header:
                # A bad row would be a line of empty cells; a note counts it.
                records = (record for record in records if "_corrupt_record" not in record)
            write_csv(records, header, live=source.live, numbers=numbers)
        else:
            as_table = write_events if settings.table is None else write_changes
            as_table([*itertools.islice(records, most)])

    with until_interrupted() as interruption:
        if output == "csv" and (tail is None or not source.again):
            header = _columns(rows, source.again)
        if tail is not None:
            if not rows.read_ends(last):
                for record in rows:
                    last.add(record, rows.message if source.unit == "messages" else None)
            if output == "csv":
                header = _columns(rows, source.again)
        elif output == "table":
            for record in itertools.islice(rows, most + 1):
                held.append(record)
        else:
            write(itertools.islice(rows, limit))
    if tail is not None:
        held = [rows.narrowed(record) for record in last.records()]
    # An interruption may come before a header is known.
    if output == "table" or (tail is not None and (header or output != "csv")):
        write(held)
        if len(held) > most:
            note(f"the first {number(most)} rows; -n shows more")
    if rows.truncated:
        note(
            f"{number(rows.truncated)} TRUNCATE or DROP of the table: they are not row changes; "
            "run without --table to see them"
        )
    if rows.ended and not reader.count:
        note("no messages")
    note_corrupt(rows.corrupt + reader.hidden, paths)
    interruption.end(f"{number(rows.count)} rows of {number(reader.count)} messages")
    if rows.ended:
        reader.check_names()
        rows.check_names()
        rows.check_good()


class _Rows:
    """The records that the options select; each iteration reads the input again.

    - ``count``: number of records so far
    - ``message``: the message of the last record
    - ``corrupt``, ``truncated``: number of events that are left out or bad
    - ``lacks_schemas``: whether a row's table schema was not found
    - ``ended``: whether the whole input was read
    """

    def __init__(
        self, reader: Reader, settings: Settings, selection: Selection, *, again: bool
    ) -> None:
        self._reader = reader
        self._selection = selection
        self._again = again
        self._columns = UnitedNames()
        self._met_all = False
        self._last: TableSchema | None = None
        self._changes = settings.table is not None
        self._images = settings["images"]
        self._no_scan = not settings["scanSchemas"]
        self._keys = tuple(settings["keyColumns"])
        self._unmet_keys = set(self._keys)
        self.count = 0
        self.message = Message(None, None)
        self.corrupt = 0
        self.truncated = 0
        self.lacks_schemas = False
        self.ended = False
        self._has_good = False

    @property
    def is_changes(self) -> bool:
        return self._changes

    def __iter__(self) -> Iterator[Record]:
        if self._changes and self._again:
            # Later rows may have columns that earlier rows lack.
            self.columns()
        self.count = self.corrupt = self.truncated = 0
        for decoded in self._reader:
            for record in self._selected(decoded):
                yield self.narrowed(record)
        self.ended = True

    def _selected(self, decoded: Decoded) -> Iterator[Record]:
        """The records of a message, with all their columns."""
        self.message = decoded.message
        shown = () if self._changes else ("topic", "path")
        for event in limited(decoded.message, decoded.events, shown, decoded.protocol):
            self._meet(event)
            if self._unmet_keys and isinstance(event, RowChange):
                self._meet_keys(event.table)
            self.corrupt += isinstance(event, Corrupt)
            self._has_good |= isinstance(event, RowChange)
            self.truncated += self._changes and _is_truncate(event)
            self.lacks_schemas |= isinstance(getattr(event, "error", None), MissingSchemaError)
            if self._selection.has(event, decoded.message):
                for record in self._records(decoded, event):
                    if self._selection.shows(record):
                        self._has_good |= not isinstance(event, Corrupt)
                        yield record
                        self.count += 1
            if isinstance(event, Corrupt):
                # Only the first bad row of a message has its bytes.
                held = attrs.evolve(decoded.message, key=None, value=None)
                decoded = attrs.evolve(decoded, message=held)

    def narrowed(self, record: Record) -> Record:
        """The record with the selected columns only."""
        return self._selection.narrowed(record, of_event=not self._changes)

    def read_ends(self, last: LastRecords) -> bool:
        """Add the last records of every partition, each read backwards from its end.

        :returns: False, with no records, if the whole input must be read: for other inputs than
            topics, and if messages before those could have a wanted table or column that they lack.
        """
        slices = self._reader.slices
        if any(slice_.last(1) is None for slice_ in slices) or not slices:
            return False
        self.count = self.corrupt = self.truncated = self._reader.hidden = 0
        found = [self._read_end(slice_, last.count) for slice_ in slices]
        columns = [*self._columns]
        for record, message in chain.from_iterable(found):
            if self._changes and "_absent" in record:
                record["_absent"] = [name for name in columns if name not in record]
            last.add(record, message)
        self._met_all = True
        try:
            self._reader.check_tables()
            self.check_names()
        except CdcfmtError:
            last.clear()
            self._columns, self._last, self._met_all = UnitedNames(), None, False
            return False
        return True

    def _read_end(self, slice_: Slice, count: int) -> deque[tuple[Record, Message]]:
        """The last records of a partition, with their messages."""
        before = self.count, self.corrupt, self.truncated, self._reader.hidden
        size = max(2 * count, _LEAST_END)
        while True:
            found: deque[tuple[Record, Message]] = deque(maxlen=count)
            self.lacks_schemas = False
            for decoded in self._reader.read_end(slice_, size):
                for record in self._selected(decoded):
                    # Names are checked in every record.
                    self.narrowed(record)
                    found.append((record, decoded.message))
            # Without a scan, schemas may be in messages before these.
            is_enough = len(found) == count and not (self._no_scan and self.lacks_schemas)
            if is_enough or size >= slice_.size:
                return found
            size *= 4
            self.count, self.corrupt, self.truncated, self._reader.hidden = before

    def _records(self, decoded: Decoded, event: Event) -> Iterator[Record]:
        if self._changes:
            yield from change_records(
                decoded,
                event,
                after_only=self._images == "after",
                key_columns=self._keys,
                columns=self._columns,
            )
            return
        record = event_record(decoded, event, key_columns=self._keys)
        if self._images != "both":
            self._drop_images(record)
        yield record

    def columns(self) -> Iterable[str]:
        """Names of all columns of the table; the first call reads the whole input."""
        if not self._met_all:
            for decoded in self._reader:
                for event in decoded.events:
                    self._meet(event)
            self._met_all = True
        return self._columns

    def header(self) -> list[str]:
        """The selected columns of the table, then those of changes."""
        names = [*(name for name in self.columns() if name not in CHANGE_COLUMNS), *CHANGE_COLUMNS]
        return [*self._selection.narrowed(dict.fromkeys(names), of_event=False)]

    def _meet(self, event: Event) -> None:
        if not self._changes or self._met_all:
            return
        if isinstance(event, RowChange) and event.table is not self._last:
            self._last = event.table
            self._columns.of(event.table.column_names)

    def _meet_keys(self, table: TableSchema) -> None:
        names = {name.lower() for name in table.column_names}
        self._unmet_keys -= {key for key in self._unmet_keys if key.lower() in names}
        self._last = table

    def check_names(self) -> None:
        """Call at the end of the input.

        :raises CdcfmtError: for a name of ``keyColumns`` that no table of the input has, and for
            another name that no record had.
        """
        if self._unmet_keys and self._last is not None:
            reason = lacking(sorted(self._unmet_keys), self._last.column_names)
            raise CdcfmtError(f"no table has such a column: {reason}")
        self._selection.check_names()

    def check_good(self) -> None:
        """Call at the end of the input.

        :raises CdcfmtError: if rows are selected, and all are bad.
        """
        bad = self.corrupt + self._reader.hidden
        if bad and not self._has_good and (self._changes or self._selection.is_given):
            some = "the only row" if bad == 1 else f"all {number(bad)} rows"
            verb = "is" if bad == 1 else "are"
            raise CdcfmtError(f"{some} of this selection {verb} bad: {self._reader.first_bad}")

    def _drop_images(self, record: Record) -> None:
        if self._images == "none" or "after" in record:
            record.pop("before", None)
        if self._images == "none":
            record.pop("after", None)


def _is_truncate(event: Event) -> bool:
    if isinstance(event, SchemaChange):
        return event.ddl_type in ("TRUNCATE", "ERASE")
    return isinstance(event, RowChange) and event.op == "truncate"


def _columns(rows: _Rows, again: bool) -> list[str]:
    """The header of a CSV, which must be known before the first row is written."""
    if not rows.is_changes:
        return list(EVENT_COLUMNS)
    if not again:
        raise OptionError(
            "CSV of changes needs the columns of the whole input first, and this input can be "
            "read only once: write it to a file, or use -f json"
        )
    return rows.header()
