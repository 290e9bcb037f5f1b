"""Shared parts of the golden tests, at decoder level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

import attrs

from cdcfmt_core.events import Event, Image, Message, RowChange, SchemaChange, Watermark
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
from support.golden_data import (
    GoldenMessage,
    Loss,
    Losses,
    Truth,
    Variant,
    open_decoder,
    python_value,
    reading_options,
    same,
)

LARGE = frozenset({"bytes", "keys", "large", "pk_change"})
COMPRESSED = frozenset({"all_types", "bytes", "ddl", "keys", "large"})
RAW = frozenset({"keys", "pk_change", "txn"})
"""The scenarios that variants of this kind cover; all others cover everything."""

NO_NAMES = [
    Loss(table, column, "names", "the wire has no members; the number came")
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
"""The column's type → its text without parameters, that text's logical type, and its own."""

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


@attrs.frozen
class Decoded:
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

    def check_claim_checks(self, named: Collection[str]) -> None:
        """The messages name all files of the claim-check folder, and no other ones."""
        files = self.variant.claims.iterdir() if self.variant.claims else ()
        assert named == {file.name for file in files}


@attrs.frozen
class Run(Decoded):
    """With the losses of the variant that are listed."""

    listed: list[Loss]

    def losses(self) -> Losses:
        return Losses(self.listed, map(".".join, self.variant.tables))


def decode_variant(
    variant: Variant,
    listed: list[Loss],
    parts_of: Callable[[GoldenMessage], Iterable[Message]] = lambda golden: [golden.message],
) -> Run:
    decoder = open_decoder(**reading_options(variant))
    return Run(
        variant,
        tuple(
            (golden, [event for part in parts_of(golden) for event in decoder.decode(part)])
            for golden in variant.messages
        ),
        listed,
    )


def outline(event: Event) -> tuple[str, str | None, str | None, str | None]:
    """Kind, operation, database and table."""
    if isinstance(event, RowChange):
        assert event.table.schema is None
        return "row", event.op, event.table.database, event.table.table
    if isinstance(event, SchemaChange):
        return "ddl", None, event.database, event.table
    assert isinstance(event, Watermark), event
    return "watermark", None, None, None


def true_outline(truth: Truth) -> tuple[str, str | None, str | None, str | None]:
    op = truth["op"] if truth["kind"] == "row" else None
    return truth["kind"], op, truth.get("schema"), truth.get("table")


def check_no_event_is_missing(run: Run, scenarios: Collection[str] | None) -> None:
    """Every true event of the scenarios that the variant covers was announced once."""
    losses = run.losses()
    announced = Counter(truth["seq"] for message, _ in run.decoded for truth in message.truth)
    for seq, truth in run.variant.truth.items():
        if scenarios is not None and truth["scenario"] not in scenarios:
            assert seq not in announced
        elif announced[seq] != 1:
            assert not announced[seq]
            assert losses.covers(table_of(truth), "*", truth["kind"]), truth
    losses.assert_all_seen("ddl", "row", "watermark")


def check_ddl_events(run: Run, *, have_schemas: bool = False) -> None:
    """Statement and Canal's word of each, and every kind of statement where all are covered."""
    seen = set()
    for truth, event in run.events():
        if isinstance(event, SchemaChange):
            seen.add(truth["ddl_type"])
            assert event.query == truth["query"]
            assert event.ddl_type == DDL_TYPES[truth["ddl_type"]], event.query
            if not have_schemas:
                assert event.table_schema is None
                assert event.previous_table_schema is None
    if "vector" in {truth["scenario"] for truth, _ in run.events()} and seen:
        happened = {t["ddl_type"] for t in run.variant.truth.values() if t["kind"] == "ddl"}
        assert seen == happened
        # Of the run with checksums some statements are left out.
        assert run.variant.name == "checksum" or happened == DDL_TYPES.keys()


def table_of(truth: Truth) -> str:
    return f"{truth.get('schema')}.{truth.get('table')}"


def handle_of(truth: Truth) -> list[str]:
    return [column["name"] for column in truth["columns"] if "handle" in column["flags"]]


def images_of(truth: Truth, event: RowChange) -> Iterator[tuple[str, Image | None]]:
    """The true image of each side; asserts that there is no other."""
    for side, image in (("old", event.before), ("new", event.after)):
        if any(side in column for column in truth["columns"]):
            yield side, image
        else:
            assert image is None


def check_value(truth: Truth, column: Truth, side: str, image: Image, losses: Losses) -> None:
    """The image's value of this column is the true one, or listed as a loss."""
    table, name, true = table_of(truth), column["name"], column[side]
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
