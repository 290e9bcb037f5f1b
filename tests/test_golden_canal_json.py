"""TiCDC's Canal-JSON against the truth: every event, column, value and type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from golden_data import (
    SOURCE_ZONE,
    GoldenMessage,
    Loss,
    Losses,
    Truth,
    Variant,
    load_variant,
    open_decoder,
    python_value,
    read_files,
    reading_options,
    same,
    variant_names,
)

from cdcfmt_core.events import (
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
)
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import (
    Binary,
    Bit,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Vector,
    Year,
)

VARIANTS = [
    "claim-check",
    "claim-check-lz4",
    "claim-check-raw-value",
    "content-compatible",
    "default",
    "delete-only-handle-key",
    "handle-key-only",
    "lz4",
    "only-output-updated-columns",
    "raw-change-event",
    "snappy",
    "storage-txn",
    "tidb-extension",
]

LARGE = {"bytes", "keys", "large", "pk_change"}
COMPRESSED = {"all_types", "bytes", "ddl", "keys", "large"}
SCENARIOS = {
    "claim-check": LARGE,
    "claim-check-lz4": LARGE,
    "claim-check-raw-value": LARGE,
    "handle-key-only": LARGE,
    "lz4": COMPRESSED,
    "snappy": COMPRESSED,
    "raw-change-event": {"keys", "pk_change", "txn"},
    "storage-txn": {"all_types", "bytes", "keys", "txn"},
}
"""What a variant covers; the others cover everything."""

# --- What the wire does not carry ------------------------------------------------------

NO_COMMIT_TS = Loss("*", "*", "commit_ts", "enable-tidb-extension is off")
NO_WATERMARKS = Loss("*", "*", "watermark", "enable-tidb-extension is off")
NO_PK_NAMES = [
    Loss(f"golden.{table}", "*", "key columns", "pkNames: a unique key is no primary key")
    for table in ("uk_no_pk", "uk_change")
]
REPLACED_BYTES = [
    Loss(f"golden.{table}", column, "characters", "TiCDC writes U+FFFD for what is not UTF-8")
    for table, column in (
        ("bad_utf8", "v"),
        ("bad_utf8", "t"),
        ("bad_utf8", "c"),
        ("bad_latin1", "v"),
        ("bad_latin1", "t"),
    )
]
NO_NAMES = [
    Loss(table, column, "names", "plain mysqlType has no members; the number came")
    for table, column in (
        ("golden.all_types", "c_enum"),
        ("golden.all_types", "c_set"),
        ("golden.bad_enum", "e"),
        ("golden.bad_enum", "e2"),
        ("golden.bad_enum", "s"),
        ("golden.defaults_nobin", "e"),
        ("golden.defaults_nobin", "s"),
        ("golden.defaults_t", "e"),
        ("golden.defaults_t", "s"),
        ("golden.large_t", "e"),
        ("golden.large_t", "s"),
        ("golden.upd_cols", "i"),
        ("golden.upd_cols", "j"),
        ("ddl_db.t1", "e"),
    )
]
HANDLE_KEY_ONLY = [
    Loss(f"golden.{table}", "*", "columns", "larger than max-message-bytes: handle key only")
    for table in ("bytes_t", "large_t")
]
HANDLE_KEY_DELETES = Loss(
    "*", "*", "columns", "delete-only-output-handle-key-columns: deletes hold the handle key"
)

EVERYWHERE = [*NO_PK_NAMES, *REPLACED_BYTES, *NO_NAMES]
LOSSES: dict[str, list[Loss]] = {
    **dict.fromkeys(VARIANTS, EVERYWHERE),
    "content-compatible": [*NO_PK_NAMES, *REPLACED_BYTES],
    "default": [*EVERYWHERE, NO_COMMIT_TS, NO_WATERMARKS],
    "delete-only-handle-key": [*EVERYWHERE, HANDLE_KEY_DELETES],
    "handle-key-only": [*EVERYWHERE, *HANDLE_KEY_ONLY],
    "storage-txn": [
        *EVERYWHERE,
        Loss("*", "*", "ddl", "data files of the storage sink hold rows only"),
        Loss("*", "*", "watermark", "data files of the storage sink hold rows only"),
    ],
}

# --- What types become -----------------------------------------------------------------

TYPES: dict[str, tuple[str, LogicalType, LogicalType]] = {
    "tinyint(1)": ("tinyint", Int(8), Int(8)),
    "tinyint(4)": ("tinyint", Int(8), Int(8)),
    "tinyint(3) unsigned": ("tinyint unsigned", Int(8, False), Int(8, False)),
    "smallint(6)": ("smallint", Int(16), Int(16)),
    "smallint(5) unsigned": ("smallint unsigned", Int(16, False), Int(16, False)),
    "mediumint(9)": ("mediumint", Int(24), Int(24)),
    "mediumint(8) unsigned": ("mediumint unsigned", Int(24, False), Int(24, False)),
    "int(11)": ("int", Int(32), Int(32)),
    "int(10) unsigned": ("int unsigned", Int(32, False), Int(32, False)),
    "int(10) unsigned zerofill": ("int unsigned zerofill", Int(32, False), Int(32, False)),
    "bigint(20)": ("bigint", Int(64), Int(64)),
    "bigint(20) unsigned": ("bigint unsigned", Int(64, False), Int(64, False)),
    "float": ("float", Float(32), Float(32)),
    "float unsigned": ("float unsigned", Float(32), Float(32)),
    "float(10,3)": ("float", Float(32), Float(32)),
    "double": ("double", Float(64), Float(64)),
    "double(16,4)": ("double", Float(64), Float(64)),
    "decimal(10,2)": ("decimal", Decimal(), Decimal(10, 2)),
    "decimal(10,4)": ("decimal", Decimal(), Decimal(10, 4)),
    "decimal(20,0) unsigned": ("decimal unsigned", Decimal(), Decimal(20, 0)),
    "decimal(20,4)": ("decimal", Decimal(), Decimal(20, 4)),
    "decimal(20,5)": ("decimal", Decimal(), Decimal(20, 5)),
    "decimal(30,10)": ("decimal", Decimal(), Decimal(30, 10)),
    "decimal(65,0)": ("decimal", Decimal(), Decimal(65, 0)),
    "decimal(65,30)": ("decimal", Decimal(), Decimal(65, 30)),
    "bit(1)": ("bit", Bit(), Bit(1)),
    "bit(4)": ("bit", Bit(), Bit(4)),
    "bit(8)": ("bit", Bit(), Bit(8)),
    "bit(10)": ("bit", Bit(), Bit(10)),
    "bit(64)": ("bit", Bit(), Bit(64)),
    "char(5)": ("char", Text(), Text()),
    "char(10)": ("char", Text(), Text()),
    "char(16)": ("char", Text(), Text()),
    "varchar(5)": ("varchar", Text(), Text()),
    "varchar(10)": ("varchar", Text(), Text()),
    "varchar(20)": ("varchar", Text(), Text()),
    "varchar(100)": ("varchar", Text(), Text()),
    "varchar(255)": ("varchar", Text(), Text()),
    "varchar(600)": ("varchar", Text(), Text()),
    "tinytext": ("tinytext", Text(), Text()),
    "text": ("text", Text(), Text()),
    "mediumtext": ("mediumtext", Text(), Text()),
    "longtext": ("longtext", Text(), Text()),
    "binary(4)": ("binary", Binary(), Binary()),
    "binary(16)": ("binary", Binary(), Binary()),
    "binary(255)": ("binary", Binary(), Binary()),
    "varbinary(20)": ("varbinary", Binary(), Binary()),
    "varbinary(255)": ("varbinary", Binary(), Binary()),
    "varbinary(300)": ("varbinary", Binary(), Binary()),
    "tinyblob": ("tinyblob", Binary(), Binary()),
    "blob": ("blob", Binary(), Binary()),
    "mediumblob": ("mediumblob", Binary(), Binary()),
    "longblob": ("longblob", Binary(), Binary()),
    "date": ("date", Date(), Date()),
    "datetime": ("datetime", DateTime(), DateTime()),
    "datetime(3)": ("datetime", DateTime(), DateTime(3)),
    "datetime(6)": ("datetime", DateTime(), DateTime(6)),
    "timestamp": ("timestamp", Timestamp(), Timestamp()),
    "timestamp(3)": ("timestamp", Timestamp(), Timestamp(3)),
    "timestamp(6)": ("timestamp", Timestamp(), Timestamp(6)),
    "time": ("time", Time(), Time()),
    "time(3)": ("time", Time(), Time(3)),
    "time(6)": ("time", Time(), Time(6)),
    "year(4)": ("year", Year(), Year()),
    "enum('','x')": ("enum", Enum(), Enum(("", "x"))),
    "enum('a','b')": ("enum", Enum(), Enum(("a", "b"))),
    "enum('a','b','c,d','e''f','中')": ("enum", Enum(), Enum(("a", "b", "c,d", "e'f", "中"))),
    "enum('x','y')": ("enum", Enum(), Enum(("x", "y"))),
    "set('a','b')": ("set", Set(), Set(("a", "b"))),
    "set('x','y')": ("set", Set(), Set(("x", "y"))),
    "set('x','y','z','w','v')": ("set", Set(), Set(("x", "y", "z", "w", "v"))),
    "json": ("json", Json(), Json()),
    "vector": ("vector", Vector(), Vector()),
    "vector(3)": ("vector", Vector(), Vector()),
}
"""The column's type → plain ``mysqlType``, its logical type, and that of the full one."""

DDL_TYPES = {
    "add column": "ALTER",
    "add foreign key": "CINDEX",
    "add index": "CINDEX",
    "add partition": "ALTER",
    "add primary key": "CINDEX",
    "alter index visibility": "ALTER",
    "alter table cache": "QUERY",
    "alter table multi-schema change": "ALTER",
    "alter table nocache": "QUERY",
    "alter table partition by": "ALTER",
    "alter table remove partitioning": "ALTER",
    "alter table reorganize partition": "ALTER",
    "create schema": "QUERY",
    "create table": "CREATE",
    "create view": "QUERY",
    "drop column": "ALTER",
    "drop foreign key": "DINDEX",
    "drop index": "DINDEX",
    "drop partition": "ALTER",
    "drop primary key": "DINDEX",
    "drop schema": "QUERY",
    "drop table": "ERASE",
    "drop view": "QUERY",
    "exchange partition": "QUERY",
    "modify column": "ALTER",
    "modify schema charset and collate": "QUERY",
    "modify table charset and collate": "ALTER",
    "modify table comment": "ALTER",
    "rebase auto_increment ID": "ALTER",
    "recover table": "QUERY",
    "rename index": "ALTER",
    "rename table": "RENAME",
    "set default value": "ALTER",
    "truncate partition": "ALTER",
    "truncate table": "TRUNCATE",
}
"""TiDB's name of an action → Canal's word."""

# --- Decoding --------------------------------------------------------------------------


@attrs.frozen
class Run:
    """A variant and the events of each of its messages."""

    variant: Variant
    decoded: tuple[tuple[GoldenMessage, list[Event]], ...]

    def events(self) -> Iterator[tuple[Truth, Event]]:
        for message, events in self.decoded:
            yield from zip(message.truth, events, strict=True)

    def rows(self) -> Iterator[tuple[Truth, RowChange]]:
        for truth, event in self.events():
            if isinstance(event, RowChange):
                yield truth, event

    def losses(self) -> Losses:
        return Losses(LOSSES[self.variant.name], map(".".join, self.variant.tables))


@pytest.fixture(scope="module", params=VARIANTS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    variant = load_variant("canal-json", request.param)
    decoder = open_decoder(**reading_options(variant))
    folder = tmp_path_factory.mktemp(variant.name)
    return Run(
        variant,
        tuple(
            (
                message,
                [
                    event
                    for part in _messages(variant, message, folder)
                    for event in decoder.decode(part)
                ],
            )
            for message in variant.messages
        ),
    )


def _messages(variant: Variant, message: GoldenMessage, folder: Path) -> list[Message]:
    """The message, or those of the file whose body the storage sink wrote."""
    if variant.name != "storage-txn":
        return [message.message]
    assert message.value is not None
    path = folder / f"CDC{message.seq:06}.json"
    path.write_bytes(message.value)
    return read_files([path])


def test_variants() -> None:
    assert variant_names("canal-json") == VARIANTS


def test_uncompressed_messages_are_recognised(run: Run) -> None:
    sniff = default_registry().get_codec("canal-json").sniff
    for message, _ in run.decoded:
        recognised = sniff(message.message) >= 0.5
        assert recognised == (run.variant.compression == "none"), message.value


# --- Events ----------------------------------------------------------------------------


def test_events_are_those_that_happened(run: Run) -> None:
    for message, events in run.decoded:
        assert [_outline(event) for event in events] == [
            (
                truth["kind"],
                truth["op"] if truth["kind"] == "row" else None,
                truth.get("schema"),
                truth.get("table"),
            )
            for truth in message.truth
        ]
        assert {truth["kind"] for truth in message.truth} == {message.kind}


def _outline(event: Event) -> tuple[str, str | None, str | None, str | None]:
    if isinstance(event, RowChange):
        assert event.table.schema is None
        return "row", event.op, event.table.database, event.table.table
    if isinstance(event, SchemaChange):
        return "ddl", None, event.database, event.table
    assert isinstance(event, Watermark), event
    return "watermark", None, None, None


def test_no_event_is_missing(run: Run) -> None:
    losses = run.losses()
    announced = Counter(truth["seq"] for message, _ in run.decoded for truth in message.truth)
    scenarios = SCENARIOS.get(run.variant.name)
    for seq, truth in run.variant.truth.items():
        if scenarios is not None and truth["scenario"] not in scenarios:
            assert seq not in announced
        elif announced[seq] != 1:
            assert not announced[seq]
            assert losses.covers("*", "*", truth["kind"]), truth
    losses.assert_all_seen("ddl", "row", "watermark")


def test_positions(run: Run) -> None:
    losses = run.losses()
    for truth, event in run.events():
        physical = truth["commit_ts"] >> 18
        if event.commit_ts != truth["commit_ts"]:
            assert event.commit_ts is None
            assert losses.covers("*", "*", "commit_ts")
        assert event.source_time == physical * 1000
        assert isinstance(event.emit_time, int)
        assert event.emit_time >= event.source_time
        assert event.index == 0
        if isinstance(event, RowChange | SchemaChange):
            assert event.sequence_commit == (physical << 18 if event.commit_ts is None else None)
    losses.assert_all_seen("commit_ts")


def test_ddl(run: Run) -> None:
    seen = Counter()
    for truth, event in run.events():
        if isinstance(event, SchemaChange):
            seen[truth["ddl_type"]] += 1
            assert event.query == truth["query"]
            assert event.ddl_type == DDL_TYPES[truth["ddl_type"]], event.query
            assert event.table_schema is None
            assert event.previous_table_schema is None
    if run.variant.name == "tidb-extension":
        assert seen.keys() == DDL_TYPES.keys()


def test_extras(run: Run) -> None:
    """What no field takes is kept: here, how a large message came."""
    seen = Counter()
    for truth, event in run.events():
        extra = dict(event.extra or {})
        if extra:
            assert truth["table"] in ("bytes_t", "large_t")
        if run.variant.claims is not None and (location := extra.pop("claim_check", None)):
            assert location.startswith("file:///")
            assert (run.variant.claims / location.rpartition("/")[2]).is_file()
            seen["claim"] += 1
        if run.variant.name == "handle-key-only" and extra:
            assert extra.pop("only_handle_key") is True
            seen["handle key"] += 1
        assert not extra
    claims = len(list(run.variant.claims.iterdir())) if run.variant.claims else 0
    assert seen["claim"] == claims
    assert seen["handle key"] == (10 if run.variant.name == "handle-key-only" else 0)


# --- Rows ------------------------------------------------------------------------------


def test_key_columns(run: Run) -> None:
    losses = run.losses()
    for truth, event in run.rows():
        table = f"{truth['schema']}.{truth['table']}"
        handle = tuple(c["name"] for c in truth["columns"] if "handle" in c["flags"])
        assert event.table.key_columns == tuple(truth["pk_names"])
        if event.table.key_columns != handle:
            assert losses.covers(table, "*", "key columns"), table
        for column in event.table.columns:
            assert column.key == (column.name in truth["pk_names"])
            assert column.nullable is None
    losses.assert_all_seen("key columns")


def test_images(run: Run) -> None:
    """Each value of each image; what is absent, and what was filled in."""
    losses = run.losses()
    for truth, event in run.rows():
        for side, image in (("old", event.before), ("new", event.after)):
            if not any(side in column for column in truth["columns"]):
                assert image is None
                continue
            assert image is not None
            _check_columns(run, truth, event, image, losses)
            for column in truth["columns"]:
                if column["name"] in image.values:
                    _check_value(truth, column, side, image, losses)
    losses.assert_all_seen("columns", "characters", "names")


def _check_columns(run: Run, truth: Truth, event: RowChange, image: Image, losses: Losses) -> None:
    columns = [column["name"] for column in truth["columns"]]
    handle = [column["name"] for column in truth["columns"] if "handle" in column["flags"]]
    table = f"{truth['schema']}.{truth['table']}"
    only_handle_key = bool(event.extra and event.extra.get("only_handle_key"))
    reduced = only_handle_key or (
        event.op == "delete" and run.variant.name == "delete-only-handle-key"
    )
    if reduced:
        assert list(image.values) == handle
        assert handle == columns or losses.covers(table, "*", "columns"), table
    else:
        assert sorted(image.values) == sorted(columns)
    assert image.complete == (not reduced)
    unchanged: list[str] = []
    if run.variant.config["only-output-updated-columns"] and image is event.before:
        unchanged = [c["name"] for c in truth["columns"] if "new" in c and c["old"] == c["new"]]
    assert list(image.completed) == unchanged


def _check_value(truth: Truth, column: Truth, side: str, image: Image, losses: Losses) -> None:
    table, name, true = f"{truth['schema']}.{truth['table']}", column["name"], column[side]
    actual = image.values[name]
    if same(python_value(true), actual):
        return
    place = f"seq {truth['seq']}, {table}.{name} {column['type']}: {actual!r} is not {true}"
    assert true is not None, place
    if true["t"] in ("enum", "set"):
        assert losses.covers(table, name, "names"), place
        assert same(int(true["n"]), actual), place
    else:
        assert losses.covers(table, name, "characters"), place
        assert "hex" in true, place
        assert same(true["v"], actual), place


def test_table_schemas(run: Run) -> None:
    """Column order, source types and logical types; one object for each schema."""
    known: dict[Any, TableSchema] = {}
    full = bool(run.variant.config["content-compatible"])
    for truth, event in run.rows():
        types = {column["name"]: column["type"] for column in truth["columns"]}
        names = event.table.column_names
        images = [image for image in (event.before, event.after) if image is not None]
        assert list(names) == [name for name in types if name in images[0].values]
        for column in event.table.columns:
            plain, plain_type, full_type = TYPES[types[column.name]]
            assert column.source_type == (types[column.name] if full else plain)
            assert column.type == (full_type if full else plain_type), column
        identity = (
            event.table.database,
            event.table.table,
            tuple((column.name, column.source_type) for column in event.table.columns),
            event.table.key_columns,
        )
        assert known.setdefault(identity, event.table) is event.table
    if run.variant.name in ("content-compatible", "tidb-extension"):
        used = {c["type"] for truth, _ in run.rows() for c in truth["columns"]}
        assert used == TYPES.keys()


def test_handle_key_deletes_without_the_option() -> None:
    """Where a primary key tells, a reduced delete is never taken for a whole one."""
    variant = load_variant("canal-json", "delete-only-handle-key")
    decoder = open_decoder(protocol="canal-json", sourceTimeZone=SOURCE_ZONE)
    taken_for_whole = set()
    for message in variant.messages:
        for truth, event in zip(message.truth, decoder.decode(message.message), strict=True):
            if isinstance(event, RowChange) and event.op == "delete":
                assert event.before is not None
                if event.before.complete:
                    taken_for_whole.add(truth["table"])
    assert taken_for_whole == {"uk_no_pk", "uk_change"}
