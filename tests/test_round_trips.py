"""What is encoded comes back: arbitrary events through every format that writes."""

from __future__ import annotations

import decimal
import struct
from collections.abc import Iterator
from typing import Any

import attrs
import naive_open_protocol
import pytest
from event_strategies import (
    ALL_TYPES,
    Carries,
    row_changes,
    same_events,
    same_value,
    schema_changes,
    tables,
)
from golden_data import open_decoder, same
from golden_encoding import open_encoder
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from naive_values import document_value

from cdcfmt_core import row_functions
from cdcfmt_core.events import (
    Column,
    Event,
    Heartbeat,
    Image,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Transaction,
    Watermark,
)
from cdcfmt_core.mysql import (
    BINARY_FLAG,
    HANDLE_KEY_FLAG,
    NULLABLE_FLAG,
    PRIMARY_KEY_FLAG,
    UNSIGNED_FLAG,
    flag_names,
    resolve_type,
)
from cdcfmt_core.mysql.type_output import column_type, type_text
from cdcfmt_core.types import (
    Bit,
    Decimal,
    Enum,
    Float,
    Geometry,
    GeometryValue,
    Int,
    Set,
    Text,
    Vector,
    Year,
)

CANAL = Carries(ALL_TYPES, source_time=True, emit_time=True)
# Shrinking and explaining a failure of such large events takes minutes.
PLAIN = settings(deadline=None, max_examples=25, phases=[Phase.reuse, Phase.generate])


@pytest.fixture(autouse=True, scope="module")
def compiled_rows() -> Iterator[None]:
    """The first row is written column by column, the others as those of a busy table are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_functions, "_ROWS_BEFORE_COMPILING", 1)
        yield


def there_and_back(
    protocol: str, events: list[Any], reading: dict[str, str], **writing: Any
) -> list[Event]:
    encoder = open_encoder(protocol, sourceTimeZone="Asia/Shanghai", **writing)
    messages = [message for event in events for message in encoder.encode(event)]
    messages += encoder.flush()
    decoder = open_decoder(protocol=protocol, sourceTimeZone="Asia/Shanghai", **reading)
    return [event for message in messages for event in decoder.decode(message)]


class TestCanalJson:
    @PLAIN
    @given(events=row_changes(CANAL), only_updated=st.booleans())
    def test_rows(self, events: list[RowChange], only_updated: bool) -> None:
        decoded = there_and_back(
            "canal-json",
            events,
            {"dialect": "ticdc"},
            enableTidbExtension=True,
            contentCompatible=only_updated,
            onlyOutputUpdatedColumns=only_updated,
        )
        if only_updated:
            same_events([normalised(event) for event in events], decoded)
            return
        # The types are bare: names of members are not told, nor how many digits there are.
        for event, other in zip(events, decoded, strict=True):
            assert isinstance(other, RowChange), other
            expected = normalised(event)
            check_bare(expected, other)
            assert (other.op, other.commit_ts) == (event.op, event.commit_ts)
            assert other.table.key_columns == event.table.key_columns

    @PLAIN
    @given(events=row_changes(CANAL))
    def test_rows_of_alibaba_canal(self, events: list[RowChange]) -> None:
        """Without a commit_ts; ``old`` has what changed, as its types are whole."""
        decoded = there_and_back("canal-json", events, {"dialect": "canal"}, dialect="canal")
        for event in events:
            event.commit_ts = None
        same_events([normalised(event) for event in events], decoded)

    @PLAIN
    @given(event=schema_changes(CANAL))
    def test_ddl(self, event: Any) -> None:
        decoded = there_and_back(
            "canal-json", [event], {"dialect": "ticdc"}, enableTidbExtension=True
        )
        same_events([event], decoded)

    @PLAIN
    @given(milliseconds=st.integers(10**12, 4 * 10**12))
    def test_watermarks(self, milliseconds: int) -> None:
        event = Watermark(milliseconds << 18, source_time=milliseconds * 1000, emit_time=5_000)
        decoded = there_and_back("canal-json", [event], {}, enableTidbExtension=True)
        assert [type(other) for other in decoded] == [Watermark]


def check_bare(event: RowChange, other: RowChange) -> None:
    """The same values, ENUM and SET as numbers."""
    assert other.table.column_names == event.table.column_names
    for image, got in ((event.before, other.before), (event.after, other.after)):
        assert (image is None) == (got is None)
        if image is None or got is None:
            continue
        assert list(got.values) == list(image.values)
        for column in event.table.columns:
            value = image.values[column.name]
            if value is not None and isinstance(column.type, (Enum, Set)):
                value = document_value(column.type, value)
            same_value(column, value, got.values[column.name])


def normalised(event: RowChange) -> RowChange:
    """Unchanged columns of ``old`` come back completed, and deletes of keys alone incomplete."""
    before = event.before
    if event.op == "update" and before is not None and event.after is not None:
        completed = tuple(
            name for name, value in event.after.values.items() if before.values[name] == value
        )
        before = attrs.evolve(before, completed=completed)
    elif event.op == "delete" and before is not None:
        key_only = len(before.values) <= len(event.table.key_columns)
        before = attrs.evolve(before, complete=not key_only)
    return attrs.evolve(event, before=before)


OPEN_TYPES = tuple(logical for logical in ALL_TYPES if not isinstance(logical, Geometry))
WITHOUT_VECTORS = tuple(t for t in ALL_TYPES if not isinstance(t, Vector))
OPEN = Carries(OPEN_TYPES)


class TestOpenProtocol:
    @PLAIN
    @given(events=row_changes(OPEN, 5), batch=st.integers(1, 4), only_updated=st.booleans())
    def test_rows(self, events: list[RowChange], batch: int, only_updated: bool) -> None:
        decoded = there_and_back(
            "open-protocol",
            events,
            {},
            maxBatchSize=batch,
            onlyOutputUpdatedColumns=only_updated,
        )
        expected = [as_open_protocol_has_it(event, only_updated) for event in events]
        for index, event in enumerate(expected):
            event.index = index % batch
            other = decoded[index]
            assert isinstance(other, RowChange), other
            if event.before is not None and (other.extra or {}).get("before_unknown"):
                # Where all of a row changed, nothing shows who wrote it: a NULL of the new
                # architecture may be a value that got lost, and is not given.
                assert None in event.before.values.values()
                event.before, event.extra = other.before, other.extra
        same_events(expected, decoded)

    @PLAIN
    @given(events=row_changes(OPEN, 5), batch=st.integers(1, 4))
    def test_a_reader_that_knows_only_the_document(
        self, events: list[RowChange], batch: int
    ) -> None:
        encoder = open_encoder("open-protocol", sourceTimeZone="UTC", maxBatchSize=batch)
        messages = [message for event in events for message in encoder.encode(event)]
        messages += encoder.flush()
        read = [
            event
            for message in messages
            for event in naive_open_protocol.read_message(message.key or b"", message.value or b"")
        ]
        assert len(read) == len(events)
        for event, other in zip(events, read, strict=True):
            assert other["ts"] == event.commit_ts
            assert (other["schema"], other["table"]) == (event.table.database, event.table.table)
            assert other["handle"] == set(event.table.key_columns)
            fields = ("d",) if event.op == "delete" else ("u", "p")
            images = (event.after or event.before, event.before)
            for field, image in zip(fields, images, strict=False):
                assert other.get(field) == (
                    None if image is None else document_values(event, image)
                )

    @PLAIN
    @given(event=schema_changes(OPEN))
    def test_ddl(self, event: SchemaChange) -> None:
        event.query += ", drop column x"
        decoded = there_and_back("open-protocol", [event], {})
        event.extra = {"ddl_type": "Add Column"}
        same_events([event], decoded)

    @PLAIN
    @given(commit_ts=st.integers(0, 2**63 - 1))
    def test_watermarks(self, commit_ts: int) -> None:
        event = Watermark(commit_ts)
        assert there_and_back("open-protocol", [event], {}) == [event]


def document_values(event: RowChange, image: Image) -> dict[str, Any]:
    """What a reader of the document makes of the values: text, bytes and numbers."""
    return {
        column.name: None
        if (value := image.values[column.name]) is None
        else document_value(column.type, value)
        for column in event.table.columns
    }


def as_open_protocol_has_it(event: RowChange, only_updated: bool) -> RowChange:
    """Columns in the order of their names, bare types, key and flags told by the flags."""
    flags_of = {}
    columns = []
    for column in sorted(event.table.columns, key=lambda column: column.name.encode()):
        parsed = column_type(column)
        source_type = type_text(attrs.evolve(parsed, zerofill=False), full=False)
        logical = resolve_type(source_type)
        assert logical is not None
        flags_of[column.name] = flags = BINARY_FLAG * (not isinstance(logical, (Text, Enum, Set)))
        flags |= HANDLE_KEY_FLAG | PRIMARY_KEY_FLAG if column.key else NULLABLE_FLAG
        if parsed.unsigned or isinstance(logical, (Bit, Year)):
            flags |= UNSIGNED_FLAG
        columns.append(
            Column(
                column.name,
                source_type,
                logical,
                nullable=not column.key,
                key=column.key,
                flags=flag_names(flags),
            )
        )
    keys = tuple(column.name for column in columns if column.key)
    table = TableSchema(event.table.database, event.table.table, tuple(columns), keys)

    def image(one: Image | None) -> Image | None:
        if one is None:
            return None
        values = {}
        for column in columns:
            value = one.values[column.name]
            old_type = next(c.type for c in event.table.columns if c.name == column.name)
            if value is not None and isinstance(old_type, (Enum, Set)):
                value = document_value(old_type, value)
            values[column.name] = value
        return Image(values)

    before, after = image(event.before), image(event.after)
    extra = None
    if len(keys) == 1 and isinstance(columns[table.column_names.index(keys[0])].type, Int):
        row_id = (after or before).values[keys[0]]  # type: ignore[union-attr]
        if row_id:
            extra = {"row_id": row_id if row_id < 2**63 else row_id - 2**64}
    if event.op == "delete" and before is not None and len(keys) == len(columns):
        before.complete = False
    if event.op == "update" and only_updated and before is not None and after is not None:
        changed = {n for n, v in before.values.items() if str(v) != str(after.values[n])}
        sent = changed or set(keys) or set(before.values)
        completed = tuple(name for name in before.values if name not in sent)
        before = Image(
            {n: before.values[n] for n in completed}
            | {n: v for n, v in before.values.items() if n in sent},
            True,
            completed,
        )
    return attrs.evolve(event, table=table, before=before, after=after, extra=extra)


SIMPLE = Carries(OPEN_TYPES, emit_time=True)


@pytest.mark.parametrize("encoding", ["avro", "json"])
class TestSimple:
    @PLAIN
    @given(events=row_changes(SIMPLE), checksums=st.booleans())
    def test_rows(self, encoding: str, events: list[RowChange], checksums: bool) -> None:
        bootstrap, *decoded = there_and_back(
            "simple",
            events,
            {"verifyChecksum": "fail"},
            encodingFormat=encoding,
            enableRowChecksum=checksums,
        )
        assert isinstance(bootstrap, TableSchemaEvent)
        table = as_simple_has_it(events[0].table)
        version = (bootstrap.extra or {})["schema_version"]
        for event, other in zip(events, decoded, strict=True):
            assert isinstance(other, RowChange), other
            assert other.table is bootstrap.table_schema
            event.table = table
            extra = dict(other.extra or {})
            assert ("checksum" in extra) == checksums
            extra.pop("checksum", None)
            assert extra == {"schema_version": version, "table_id": 0}
            event.extra = other.extra
        same_events(list(events), decoded)

    @PLAIN
    @given(event=schema_changes(SIMPLE), tables=st.lists(tables(SIMPLE), min_size=2, max_size=2))
    def test_ddl(self, encoding: str, event: SchemaChange, tables: list[TableSchema]) -> None:
        event.table_schema, event.previous_table_schema = tables
        event.database, event.table = tables[0].database, tables[0].table
        (decoded,) = there_and_back("simple", [event], {}, encodingFormat=encoding)
        assert isinstance(decoded, SchemaChange)
        for table, other in zip(
            tables, (decoded.table_schema, decoded.previous_table_schema), strict=True
        ):
            assert other is not None
            assert attrs.asdict(other, recurse=False) == attrs.asdict(
                as_simple_has_it(table), recurse=False
            )
        event.table_schema, event.previous_table_schema = (
            decoded.table_schema,
            decoded.previous_table_schema,
        )
        event.extra = decoded.extra
        assert decoded == event

    @PLAIN
    @given(commit_ts=st.integers(0, 2**63 - 1), milliseconds=st.integers(10**12, 4 * 10**12))
    def test_watermarks(self, encoding: str, commit_ts: int, milliseconds: int) -> None:
        event = Watermark(commit_ts, emit_time=milliseconds * 1000)
        assert there_and_back("simple", [event], {}, encodingFormat=encoding) == [event]


def as_simple_has_it(table: TableSchema) -> TableSchema:
    """With display widths, charset and collation, and NOT NULL for the key."""
    columns = []
    for column in table.columns:
        flags: tuple[str, ...] = ()
        logical = column.type
        if isinstance(logical, (Text, Enum, Set)):
            flags = ("charset utf8mb4", "collate utf8mb4_bin")
        if isinstance(logical, Text):
            logical = Text("utf8mb4")
        columns.append(
            attrs.evolve(
                column,
                source_type=with_widths(column),
                type=logical,
                nullable=not column.key,
                flags=flags,
            )
        )
    return attrs.evolve(table, columns=tuple(columns))


def with_widths(column: Column) -> str:
    parsed = column_type(column)
    unsigned = parsed.unsigned
    widths = {"tinyint": 4, "smallint": 6, "mediumint": 9, "int": 11, "bigint": 20}
    if parsed.base in widths:
        width = widths[parsed.base] - (unsigned and parsed.base != "bigint")
        return f"{parsed.base}({width})" + " unsigned" * unsigned
    return "year(4)" if parsed.base == "year" else column.source_type


CLOUDCANAL = Carries(ALL_TYPES, commit_ts=False, source_time=True, emit_time=True)


class TestCloudCanalJson:
    @PLAIN
    @given(events=row_changes(CLOUDCANAL), binary=st.sampled_from(["latin1", "base64", "hex"]))
    def test_rows(self, events: list[RowChange], binary: str) -> None:
        decoded = there_and_back(
            "cloudcanal-json", events, {"binaryEncoding": binary}, binaryEncoding=binary
        )
        for event in events:
            event.extra = {"bid": 0}
        same_events(list(events), decoded)

    @PLAIN
    @given(event=schema_changes(CLOUDCANAL), table=tables(CLOUDCANAL))
    def test_ddl(self, event: SchemaChange, table: TableSchema) -> None:
        event.table_schema = table
        event.database, event.table = table.database, table.table
        (decoded,) = there_and_back("cloudcanal-json", [event], {})
        assert isinstance(decoded, SchemaChange)
        assert decoded.table_schema is not None
        assert attrs.asdict(decoded.table_schema, recurse=False) == attrs.asdict(
            table, recurse=False
        )
        event.table_schema, event.extra = decoded.table_schema, {"bid": 0}
        assert decoded == event

    def test_borders_and_heartbeats(self) -> None:
        events = [
            Transaction("begin", source_time=1_000, emit_time=2_000),
            Transaction("commit", source_time=1_000, emit_time=2_000),
            Heartbeat(source_time=1_000, emit_time=2_000),
        ]
        decoded = there_and_back("cloudcanal-json", events, {})
        words = ["TRANSACTIONBEGIN", "TRANSACTIONEND", "HEARTBEAT"]
        for event, word in zip(events, words, strict=True):
            event.extra = {"bid": 0, "entry_type": word}
        assert decoded == events


DTS = Carries(WITHOUT_VECTORS, commit_ts=False, source_time=True)


class TestDtsAvro:
    @PLAIN
    @given(events=row_changes(DTS))
    def test_rows(self, events: list[RowChange]) -> None:
        decoded = there_and_back("dts-avro", events, {})
        for event, other in zip(events, decoded, strict=True):
            assert isinstance(other, RowChange), other
            assert other.op == event.op
            assert other.source_time == (event.source_time or 0) // 1_000_000 * 1_000_000
            assert (other.table.database, other.table.table) == (
                event.table.database,
                event.table.table,
            )
            assert other.table.column_names == event.table.column_names
            assert other.table.key_columns == event.table.key_columns
            for image, got in ((event.before, other.before), (event.after, other.after)):
                assert (image is None) == (got is None)
                if image is None or got is None:
                    continue
                assert got.complete
                for column in event.table.columns:
                    value = image.values[column.name]
                    if value is not None and column.type in (Int(64), Int(64, signed=False)):
                        value = decimal.Decimal(value)
                    if isinstance(value, GeometryValue):
                        value = GeometryValue(None, value.wkb)
                    assert same(value, got.values[column.name]), column


DEBEZIUM = Carries(
    # A decimal of more digits than a double keeps does not return.
    (*(t for t in ALL_TYPES if not isinstance(t, Decimal)), Decimal(10, 2)),
    ops=("insert", "update", "delete", "read"),
    invalid_dates=False,
    source_time=True,
    emit_time=True,
)


class TestDebezium:
    @PLAIN
    @given(events=row_changes(DEBEZIUM))
    def test_rows_with_types(self, events: list[RowChange]) -> None:
        decoded = there_and_back("debezium", events, {}, enableTidbExtension=True)
        assert len(decoded) == len(events)
        for event, other in zip(events, decoded, strict=True):
            assert isinstance(other, RowChange), other
            check_debezium(event, other)

    @PLAIN
    @given(events=row_changes(DEBEZIUM))
    def test_rows_whose_types_a_ddl_tells(self, events: list[RowChange]) -> None:
        """As MySQL declares them: without a schema a DATETIME is as precise as it says."""
        table = events[0].table
        ddl = SchemaChange(
            "create table t (…)",
            "CREATE",
            table.database,
            table.table,
            table_schema=table,
            commit_ts=1,
        )
        decoded = there_and_back("debezium", [ddl, *events], {}, debeziumDisableSchema=True)
        assert isinstance(decoded[0], SchemaChange)
        assert decoded[0].table_schema is not None
        told = decoded[0].table_schema
        assert [(c.name, c.type) for c in told.columns] == [(c.name, c.type) for c in table.columns]
        for event, other in zip(events, decoded[1:], strict=True):
            assert isinstance(other, RowChange), other
            check_debezium(event, other)

    @PLAIN
    @given(milliseconds=st.integers(10**12, 4 * 10**12))
    def test_watermarks(self, milliseconds: int) -> None:
        event = Watermark(milliseconds << 18, source_time=milliseconds * 1000, emit_time=5_000)
        decoded = there_and_back("debezium", [event], {}, enableTidbExtension=True)
        event.extra = {"cluster_id": "default"}
        assert decoded == [event]


def check_debezium(event: RowChange, other: RowChange) -> None:
    """The same change; types may be barer than they were."""
    assert (other.op, other.commit_ts) == (event.op, event.commit_ts)
    assert (other.source_time, other.emit_time) == (event.source_time, event.emit_time)
    assert (other.table.database, other.table.table) == (event.table.database, event.table.table)
    assert set(other.table.key_columns) == set(event.table.key_columns)
    for image, got in ((event.before, other.before), (event.after, other.after)):
        assert (image is None) == (got is None)
        if image is None or got is None:
            continue
        assert got.complete
        assert got.values.keys() == image.values.keys()
        for column in event.table.columns:
            value, returned = image.values[column.name], got.values[column.name]
            if value == returned == 0:
                # In JSON -0 is an integer, which has no sign.
                continue
            if isinstance(column.type, Vector) or column.type == Float(32):
                value, returned = as_float32(value), as_float32(returned)
            assert value == returned, column


def as_float32(value: Any) -> Any:
    if isinstance(value, list):
        return [as_float32(number) for number in value]
    return None if value is None else struct.pack("<f", value)
