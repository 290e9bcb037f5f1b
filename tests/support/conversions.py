"""Survival of values in conversions: golden messages of each format, written in every other one.

The way is that of ``spark.read.format("cdc")`` with ``includeColumns=true`` into
``df.write.format("cdc")``, without a session: messages, events, rows, events, messages,
events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import attrs

from cdcfmt_core import default_registry
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Image, Message, RowChange, TableSchema
from cdcfmt_core.types import Enum, Json, LogicalType, Set
from cdcfmt_mysql.numbers import MAX_DIGITS
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.schemas import find_schemas
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.input_tables import InputTables
from pyspark_cdcfmt.rows.json_values import parse_json_column
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.record_batches import BatchBuilder
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.rows.rows_to_events import EventInput
from support.framed_data import framed_messages
from support.golden_data import SOURCE_ZONE, load_variant, native_messages
from support.golden_data import open_decoder as open_golden_decoder
from support.golden_encoding import open_encoder
from support.schema_registry import with_registry

SOURCES: dict[str, tuple[str, str] | str] = {
    "canal-json": ("canal-json", "tidb-extension"),
    "canal-json (Canal)": "canal/canal_flat",
    "open-protocol": ("open", "batched"),
    "debezium": ("debezium", "tidb-extension"),
    "debezium (connector)": "debezium/schema_default",
    "debezium (PostgreSQL)": "postgres/schema_default",
    "simple": ("simple-json", "default"),
    "dts-avro": "dts/dts",
}
"""Messages that hold as much as their format can."""

POSTGRES = "debezium (PostgreSQL)"

TARGETS: dict[str, dict[str, Any]] = {
    "canal-json": {"enableTidbExtension": True, "synthesizeCommitTs": True},
    "canal-json (Canal)": {"dialect": "canal"},
    "debezium": {"enableTidbExtension": True, "synthesizeCommitTs": True},
    "open-protocol": {"synthesizeCommitTs": True},
    "simple": {"synthesizeCommitTs": True},
    "ticdc-avro": {
        "enableTidbExtension": True,
        "avroIncludeBeforeValue": True,
        "avroEnableWatermark": True,
    },
}
"""Options of the formats that are written; others are written with none."""

READING: dict[str, dict[str, str]] = {"cloudcanal-json": {"binaryEncoding": "latin1"}}
"""Options for readers of the written formats, which the wire lacks."""

_COMMON = {"sourceTimeZone": SOURCE_ZONE, "unsupportedEvents": "fail"}


@attrs.define
class Survivors:
    """The surviving and the lost values."""

    kinds: set[str] = attrs.field(factory=set)
    lost: set[str] = attrs.field(factory=set)
    refused: set[str] = attrs.field(factory=set)
    changed: set[str] = attrs.field(factory=set)
    rows: Counter[str] = attrs.field(factory=Counter)

    def share(self, what: str) -> str:
        """``yes`` where all rows kept it, ``no`` where none did, ``-`` where none had it."""
        kept, had = self.rows[what], self.rows[f"had {what}"]
        return "-" if not had else "yes" if kept == had else "no" if not kept else "some"


def targets() -> list[str]:
    """The formats that are written, as the table calls them."""
    names = [name for name, spec in default_registry().codecs().items() if spec.open_encoder]
    return sorted({*names, *(name for name in TARGETS if name.partition(" ")[0] in names)})


@cache
def survey() -> dict[tuple[str, str], Survivors]:
    """Every pair of a source and a target."""
    result = {}
    for source in SOURCES:
        events = list(events_of(source))
        for target in targets():
            result[source, target] = convert(events, target)
    return result


def events_of(source: str) -> Iterator[Event]:
    """The golden events of a source, as the rows of a DataFrame hold them."""
    case = SOURCES[source]
    messages: list[Message]
    if case == SOURCES[POSTGRES]:
        # A sample: its tables have schemas, which most formats lack, so they lose them here.
        messages = framed_messages(str(case))[::3]
    elif isinstance(case, str):
        messages = list(native_messages(case))
    else:
        messages = [golden.message for golden in load_variant(*case).messages]
    protocol = source.partition(" ")[0]
    options = parse_options(
        {"protocol": protocol, "sourcetimezone": SOURCE_ZONE, "includecolumns": "true"}
    )
    schema = events_schema(options)
    rows = EventRows(ReadTask(schema, options), ValuePolicy("null"))
    decoder = open_decoder(
        options, options.event_filter(), schemas=find_schemas(options, lambda _: messages)
    )
    builder = BatchBuilder(schema)
    batches = []
    for message in messages:
        for event in decoder.decode(message):
            batches += builder.add(list(rows.rows(message, event, decoder.protocol)), 0)
    batches += builder.flush()
    tables = InputTables(default_registry(), type_map=None, by_values=False)
    events = (read.event for read in EventInput(schema, tables).events(batches))
    if source != POSTGRES:
        return events
    return (_without_schema(event) for event in events if not _has_long_decimal(event))


def _has_long_decimal(event: Event) -> bool:
    """Whether a number has more digits than MySQL's, with which its formats are read."""
    if not isinstance(event, RowChange):
        return False
    values = [v for image in (event.before, event.after) if image for v in image.values.values()]
    return any(isinstance(v, Decimal) and len(v.as_tuple().digits) > MAX_DIGITS for v in values)


@cache
def _table_without_schema(table: TableSchema) -> TableSchema:
    return attrs.evolve(table, schema=None)


def _without_schema(event: Event) -> Event:
    if not isinstance(event, RowChange):
        return event
    return attrs.evolve(event, table=_table_without_schema(event.table))


def convert(events: Iterable[Event], target: str) -> Survivors:
    """Writes events in a format, reads them, and compares."""
    protocol = target.partition(" ")[0]
    encoder = open_encoder(protocol, **_COMMON, **TARGETS.get(target, {}))
    found = Survivors()
    narrowed: dict[Any, TableSchema] = {}
    written = [(event, *_written(event, encoder, found, narrowed)) for event in events]
    options = parse_options(with_registry(protocol, {"protocol": protocol}, writes=False))
    output = [message for *_, messages in written for message in messages or ()]
    decoder = open_golden_decoder(
        protocol=protocol,
        sourceTimeZone=SOURCE_ZONE,
        schemas=find_schemas(options, lambda _: output),
        **READING.get(protocol, {}),
    )
    for event, sent, messages in written:
        word = _word(event)
        if messages is None:
            found.lost.add(word)
            continue
        back = [read for message in messages for read in decoder.decode(message)]
        corrupt = [read for read in back if isinstance(read, Corrupt)]
        assert not corrupt, (target, corrupt[0].error)
        if any(_word(read) == word for read in back):
            found.kinds.add(word)
        else:
            found.lost.add(word)
        if isinstance(sent, RowChange) and len(back) == 1 and isinstance(back[0], RowChange):
            _compare(sent, back[0], found)
    found.lost = {f"some {word}" if word in found.kinds else word for word in found.lost}
    return found


def _written(
    event: Event,
    encoder: MessageEncoder,
    found: Survivors,
    narrowed: dict[Any, TableSchema],
) -> tuple[Event, list[Message] | None]:
    """The messages of an event, without the columns that the format refuses."""
    left_out: tuple[str, ...] = ()
    sent = event
    while True:
        try:
            return sent, [*encoder.encode(sent), *encoder.flush()]
        except UnsupportedEventError:
            return sent, None
        except EncodeError as error:
            if not isinstance(event, RowChange) or error.column in (None, *left_out):
                return sent, None
            assert error.column is not None  # noqa: PT017 (for mypy alone)
            types = {column.name: column.type for column in event.table.columns}
            found.refused.add(_type(types[error.column]))
            left_out += (error.column,)
            sent = _without(event, left_out, narrowed)


def _without(
    event: RowChange, left_out: tuple[str, ...], narrowed: dict[Any, TableSchema]
) -> RowChange:
    key = (event.table, left_out)
    if key not in narrowed:
        columns = tuple(c for c in event.table.columns if c.name not in left_out)
        narrowed[key] = attrs.evolve(event.table, columns=columns)

    def image(given: Image | None) -> Image | None:
        if given is None:
            return None
        return attrs.evolve(
            given, values={n: v for n, v in given.values.items() if n not in left_out}
        )

    return attrs.evolve(
        event, table=narrowed[key], before=image(event.before), after=image(event.after)
    )


def _compare(sent: RowChange, back: RowChange, found: Survivors) -> None:
    types = {column.name: column.type for column in sent.table.columns}
    for one, other in ((sent.before, back.before), (sent.after, back.after)):
        if one is None or other is None:
            continue
        for name, value in one.values.items():
            if name in other.values and not _same(types[name], value, other.values[name]):
                found.changed.add(_type(types[name]))
    images = [image for image in (sent.before, sent.after) if image is not None]
    if any(len(image.values) < len(types) for image in images):
        _count(found, "absent", kept=_names(sent) == _names(back))
    if sent.op == "update" and sent.before is not None:
        _count(found, "before", kept=back.before is not None)
    if sent.commit_ts is not None:
        _count(found, "commit_ts", kept=back.commit_ts == sent.commit_ts)
    if sent.table.key_columns:
        kept = set(back.table.key_columns) == set(sent.table.key_columns)
        _count(found, "key", kept=kept)


def _count(found: Survivors, what: str, *, kept: bool) -> None:
    found.rows[f"had {what}"] += 1
    found.rows[what] += kept


def _names(event: RowChange) -> list[Any]:
    return [None if i is None else set(i.values) for i in (event.before, event.after)]


def _same(type_: LogicalType, value: Any, other: Any) -> bool:
    if isinstance(type_, Json) and isinstance(value, str) and isinstance(other, str):
        return bool(parse_json_column(value) == parse_json_column(other))
    if isinstance(type_, Enum | Set) and value in ("", 0):
        # MySQL's number of the empty one.
        return other in ("", 0)
    # NaN is not equal to itself.
    return bool(value == other) or repr(value) == repr(other)


def _word(event: Event) -> str:
    return event.op if isinstance(event, RowChange) else KIND_OF[type(event)]


def _type(type_: LogicalType) -> str:
    return type(type_).__name__


def conversion_table() -> list[tuple[str, ...]]:
    """The rows of the docs' table, its head first."""
    head = (
        "from",
        "to",
        "events that are lost",
        "types that are refused",
        "values that change",
        "absent columns",
        "before images",
        "`commit_ts`",
        "key",
    )
    rows = [
        (
            source,
            target,
            _list(found.lost),
            _list(found.refused),
            _list(found.changed),
            found.share("absent"),
            found.share("before"),
            found.share("commit_ts"),
            found.share("key"),
        )
        for (source, target), found in survey().items()
    ]
    return [head, *rows]


def _list(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "none"
