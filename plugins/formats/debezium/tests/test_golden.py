"""TiCDC's Debezium messages against the truth: every event, column, value and type."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest
from support.golden_data import (
    Loss,
    Losses,
    Truth,
    load_variant,
    open_decoder,
    python_value,
    reading_options,
    same,
    variant_names,
)
from support.golden_rows import Decoded

from cdcfmt_core.events import Event, RowChange, SchemaChange, TableSchema, Watermark
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import (
    Bit,
    Bool,
    Date,
    DateTime,
    Enum,
    Float,
    Int,
    InvalidValue,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
    Year,
)
from cdcfmt_mysql import resolve_type

VARIANTS = [
    "default",
    "disable-schema",
    "lz4",
    "no-old-value",
    "raw-change-event",
    "tidb-extension",
    "tidb-extension-disable-schema",
]

SCENARIOS = {
    "lz4": {"all_types", "bytes", "ddl", "keys", "large"},
    "raw-change-event": {"keys", "pk_change", "txn"},
}
"""The coverage of a variant; variants not listed cover everything."""

NO_DDL = "without DDL"
RUNS = [
    *VARIANTS,
    *(f"{name} {NO_DDL}" for name in ("default", "disable-schema", "tidb-extension")),
]
"""Without DDL messages, types come only from the rows."""

# --- What the wire does not carry ------------------------------------------------------

_PANIC = "the encoder panics at NULL in a binary column with a default, and loses the table's rows"
_NOT_SENT = "TiCDC's Debezium sends no such DDL"

NOT_SENT = [
    Loss("golden.defaults_t", "*", "row", _PANIC),
    Loss("golden.default_varbinary", "*", "row", _PANIC),
    Loss("golden.zero_dates", "*", "row", "the encoder refuses a date that no calendar has"),
    Loss("ddl_db.child", "*", "ddl", _NOT_SENT),
    Loss("ddl_db.t_tiflash", "*", "ddl", _NOT_SENT),
    Loss("ddl_db.t_shard", "*", "ddl", _NOT_SENT),
    Loss("ddl_db.t1_r2", "*", "ddl", _NOT_SENT),
]
NO_WATERMARKS = Loss("*", "*", "watermark", "enable-tidb-extension is off")

_DOUBLE = "decimals go through a double: 15 to 17 digits are right"
DOUBLES = [
    Loss("golden.all_types", "c_dec_u", "double", _DOUBLE),
    Loss("golden.all_types", "c_dec_big", "double", _DOUBLE),
    Loss("golden.all_types", "c_dec_int", "double", _DOUBLE),
    Loss("golden.pk_time", "d", "double", _DOUBLE),
]
_ZEROS = "tidb_type alone has no scale: the zeros at a decimal's end are not known"
ZEROS = [
    Loss("golden.all_types", "c_dec", "zeros", _ZEROS),
    Loss("golden.all_types", "c_dec_big", "zeros", _ZEROS),
    Loss("ddl_db.t1", "d", "zeros", _ZEROS),
    Loss("golden.upd_cols", "d", "zeros", _ZEROS),
    Loss("golden.large_t", "d", "zeros", _ZEROS),
]

DEFAULTS: dict[str, Any] = {
    "i": 7,
    "iu": 2**64 - 1,
    "ti": -1,
    "f": 1.5,
    "d": 2.5,
    "de": Decimal("3.25"),
    "v": "def",
    "c": "c",
    "vz": "",
    "dt": date(2020, 1, 2),
    "dtm": datetime(2020, 1, 2, 3, 4, 5, 678000),
    # The default, shifted by the server's zone twice.
    "ts": datetime(2020, 1, 1, 11, 4, 5, tzinfo=UTC),
    # DEFAULT CURRENT_TIMESTAMP.
    "dn": datetime(1970, 1, 1),
    "t": python_value({"t": "time", "v": "-01:02:03"}),
    "e": "b",
    "s": "a,b",
    "b": 5,
    "b1": 1,
}
"""The replacement of NULL in a column with a default; for YEAR it is text, unlike its values."""
NULLS = [
    Loss("golden.defaults_nobin", column, "null", "NULL is encoded as the column's default")
    for column in DEFAULTS
]

_ZERO = "a zero date is null, or 1970 where the column is NOT NULL or a timestamp"
_CENTURY = "a year below 100 gets a century"
DATES = [
    *(Loss("golden.zero_dates", c, "zero", _ZERO) for c in ("d", "d_nn", "dt", "dt_nn", "dt6")),
    *(Loss("golden.zero_dates", c, "zero", _ZERO) for c in ("ts", "ts_nn")),
    *(Loss("golden.zero_dates", c, "century", _CENTURY) for c in ("d", "d_nn", "dt", "dt_nn")),
    Loss("golden.zero_dates", "dt6", "century", _CENTURY),
]

_BASE64 = "the schema says string; only tidb_type or DDL tell that it is binary"
_SIGN = "the schema says int64; only tidb_type or DDL tell that it is unsigned"
BY_SCHEMA_ALONE = [
    *(Loss("*", f"binary({n})", "base64", _BASE64) for n in (4, 16, 255)),
    *(Loss("*", f"varbinary({n})", "base64", _BASE64) for n in (20, 255, 300)),
    *(Loss("*", f"{size}blob", "base64", _BASE64) for size in ("", "tiny", "medium", "long")),
    Loss("*", "bigint(20) unsigned", "sign", _SIGN),
]

LEARNED = [*NOT_SENT, *DOUBLES, *NULLS, *DATES]
LOSSES = {
    "default": [*LEARNED, NO_WATERMARKS],
    "disable-schema": [*LEARNED, NO_WATERMARKS],
    "lz4": [*(x for x in NOT_SENT if x.aspect == "ddl"), *DOUBLES, NO_WATERMARKS],
    "no-old-value": LEARNED,
    "raw-change-event": [*DOUBLES],
    "tidb-extension": LEARNED,
    "tidb-extension-disable-schema": LEARNED,
    f"tidb-extension {NO_DDL}": [*DOUBLES, *ZEROS, *NULLS, *DATES],
    f"default {NO_DDL}": [*NULLS, *DATES, *BY_SCHEMA_ALONE],
}

DDL_TYPES = {
    "create schema": {"QUERY"},
    "create table": {"CREATE"},
    "create view": {"QUERY"},
    "add index": {"ALTER", "CINDEX"},
    "drop index": {"ALTER", "DINDEX"},
    "drop schema": {"QUERY"},
    "drop table": {"ERASE"},
    "drop view": {"QUERY"},
    "modify schema charset and collate": {"QUERY"},
    "rename table": {"RENAME"},
    "truncate table": {"TRUNCATE"},
}
"""TiDB's name of an action → Canal's word by the statement's first ones; ALTER for others."""

# --- Decoding --------------------------------------------------------------------------


@attrs.frozen
class Run(Decoded):
    """A variant, with or without its DDL."""

    name: str

    @property
    def has_ddl(self) -> bool:
        return NO_DDL not in self.name

    @property
    def has_types(self) -> bool:
        """Whether rows or DDL have the database's types."""
        return self.has_ddl or bool(self.variant.config["enable-tidb-extension"])

    def losses(self) -> Losses:
        tables = {
            f"{t['schema']}.{t['table']}" for t in self.variant.truth.values() if "table" in t
        }
        listed = [
            loss
            for loss in LOSSES[self.name]
            if self.name not in SCENARIOS
            or any(
                f"{t.get('schema')}.{t.get('table')}" == loss.table
                and t["scenario"] in SCENARIOS[self.name]
                for t in self.variant.truth.values()
            )
            or loss.table == "*"
        ]
        return Losses(listed, tables)


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    variant = load_variant("debezium", request.param.partition(" ")[0])
    decoder = open_decoder(**reading_options(variant))
    return Run(
        variant,
        tuple(
            (message, decoder.decode(message.message))
            for message in variant.messages
            if message.kind != "ddl" or NO_DDL not in request.param
        ),
        request.param,
    )


def test_variants() -> None:
    assert variant_names("debezium") == VARIANTS


def test_uncompressed_messages_are_recognised(run: Run) -> None:
    sniff = default_registry().get_codec("debezium").sniff
    for message, _ in run.decoded:
        recognised = sniff(message.message) >= 0.5
        assert recognised == (run.variant.compression == "none"), message.value


# --- Events ----------------------------------------------------------------------------


def test_events_equal_the_truth(run: Run) -> None:
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


def test_all_events_are_present(run: Run) -> None:
    if not run.has_ddl:
        return
    losses = run.losses()
    announced = Counter(truth["seq"] for message, _ in run.decoded for truth in message.truth)
    scenarios = SCENARIOS.get(run.name)
    for seq, truth in run.variant.truth.items():
        if scenarios is not None and truth["scenario"] not in scenarios:
            assert seq not in announced
        elif announced[seq] != 1:
            assert not announced[seq]
            table = f"{truth.get('schema')}.{truth.get('table')}"
            assert losses.covers(table, "*", truth["kind"]), truth
    losses.assert_all_seen("ddl", "row", "watermark")


def test_positions(run: Run) -> None:
    for truth, event in run.events():
        assert event.commit_ts == truth["commit_ts"]
        assert event.source_time == (truth["commit_ts"] >> 18) * 1_000_000 // 1000
        assert isinstance(event.emit_time, int)
        assert event.emit_time >= event.source_time
        assert event.index == 0
        if isinstance(event, RowChange | SchemaChange):
            assert event.sequence_commit is None


def test_ddl(run: Run) -> None:
    seen = Counter()
    for truth, event in run.events():
        if isinstance(event, SchemaChange):
            seen[truth["ddl_type"]] += 1
            assert event.query == truth["query"]
            assert event.ddl_type in DDL_TYPES.get(truth["ddl_type"], {"ALTER"}), event.query
            has_schema = truth["table"] and truth["ddl_type"] not in (
                "drop table",
                "truncate table",
            )
            assert (event.table_schema is not None) == bool(has_schema), event.query
            if event.table_schema is not None and "view" not in truth["ddl_type"]:
                _check_table_schema(truth, event.table_schema)
    assert run.has_ddl == bool(seen)
    if run.name == "tidb-extension":
        assert seen.keys() >= DDL_TYPES.keys()


def _check_table_schema(truth: Truth, schema: TableSchema) -> None:
    assert (schema.database, schema.table) == (truth["schema"], truth["table"])
    actual = {column.name: column for column in schema.columns}
    for column in truth["table_columns"]:
        assert actual[column["name"]].source_type == _ddl_text(column["type"]), column
        assert actual[column["name"]].type == resolve_type(column["type"])
        assert actual[column["name"]].nullable == column["nullable"]


def test_extras(run: Run) -> None:
    for truth, event in run.events():
        assert event.extra is not None
        extra = dict(event.extra)
        assert extra.pop("cluster_id") == "default"
        if isinstance(event, SchemaChange):
            ids = extra.pop("table_id", None)
            assert (ids is not None) == (truth["ddl_type"] == "rename table")
            assert extra.pop("ddl_type", None) in ("CREATE", "ALTER", "DROP", None)
            charset = extra.pop("table_charset", None)
            assert (charset is not None) == (event.table_schema is not None)
        if not run.has_types:
            ambiguous = set(extra.pop("ambiguous_unsigned", ()))
            assert ambiguous == _negative_on_the_wire(run, truth, event)
        assert not extra


def _negative_on_the_wire(run: Run, truth: Truth, event: Event) -> set[str]:
    """Columns with a negative number and unknown sign."""
    assert isinstance(event, RowChange | Watermark)
    if isinstance(event, Watermark):
        return set()
    images = [image.values for image in (event.before, event.after) if image is not None]
    long = {column["name"] for column in truth["columns"] if column["type"].startswith("bigint")}
    return {
        name
        for image in images
        for name, value in image.items()
        if type(value) is int and value < 0 and ("disable" in run.name or name in long)
    }


# --- Rows ------------------------------------------------------------------------------


def test_keys_and_columns(run: Run) -> None:
    """One schema object per table schema; its keys, column order, types and NOT NULLs."""
    known: dict[Any, TableSchema] = {}
    for truth, event in run.rows():
        handle = tuple(c["name"] for c in truth["columns"] if "handle" in c["flags"])
        assert event.table.key_columns == handle
        assert list(event.table.column_names) == [c["name"] for c in truth["columns"]]
        for true, column in zip(truth["columns"], event.table.columns, strict=True):
            assert column.key == (column.name in handle)
            if run.has_types or "disable" not in run.name:
                assert column.nullable == ("nullable" in true["flags"])
            text, logical = _expected_type(run, true["type"])
            assert (column.source_type, column.type) == (text, logical), (truth["table"], column)
        identity = (
            event.table.database,
            event.table.table,
            tuple((c.name, c.source_type, c.nullable) for c in event.table.columns),
            event.table.key_columns,
        )
        assert known.setdefault(identity, event.table) is event.table


def _ddl_text(type_: str) -> str:
    """A column's type as ``tableChanges`` has it: without lengths that TiDB has by default."""
    text = re.sub(r"^(tinyint|smallint|mediumint|int|bigint)\((?!1\)).*?\)", r"\1", type_)
    text = re.sub(r"^(decimal.*) unsigned$", r"\1", text)
    return {"year(4)": "year", "varchar(5)": "varchar"}.get(text, text)


def _tidb_type(type_: str) -> tuple[str, LogicalType]:
    """``tidb_type`` and its logical type, both with the names and lengths of ``schema``."""
    full = resolve_type(type_)
    if isinstance(full, Bit | Enum | Set):
        return type_, full
    base = re.sub(r"\(.*\)", "", type_).replace(" zerofill", "")
    base = base.replace("decimal unsigned", "decimal")
    plain = resolve_type(base)
    assert plain is not None
    return base, plain


def _expected_type(run: Run, type_: str) -> tuple[str, LogicalType]:
    full = resolve_type(type_)
    assert full is not None
    config = run.variant.config
    if run.has_ddl:
        return _ddl_text(type_), full
    if config["enable-tidb-extension"] and not config["debezium-disable-schema"]:
        return _tidb_type(type_)
    if config["debezium-disable-schema"]:
        return "", Unknown()
    return _connect_type(type_, full)


def _connect_type(type_: str, full: LogicalType) -> tuple[str, LogicalType]:
    time = "io.debezium.time."
    if isinstance(full, Int):
        bits = {8: 16, 16: 16 if full.signed else 32, 24: 32, 32: 32 if full.signed else 64}
        return f"int{bits.get(full.bits, 64)}", Int(bits.get(full.bits, 64))
    if isinstance(full, DateTime):
        micro = (full.fsp or 0) > 3
        return time + ("MicroTimestamp" if micro else "Timestamp"), DateTime()
    if isinstance(full, Bit):
        bits = f"io.debezium.data.Bits({full.bits})"
        return ("boolean", Bool()) if full.bits == 1 else (bits, full)
    if isinstance(full, Float):
        single = full.bits == 32 and "," not in type_
        return ("float", Float(32)) if single else ("double", Float(64))
    named: dict[type, tuple[str, LogicalType]] = {
        Date: (time + "Date", Date()),
        Timestamp: (time + "ZonedTimestamp", Timestamp()),
        Time: (time + "MicroTime", Time()),
        Year: (time + "Year", Year()),
        Enum: (type_.replace("enum", "io.debezium.data.Enum", 1), full),
        Set: (type_.replace("set", "io.debezium.data.EnumSet", 1), full),
        Json: ("io.debezium.data.Json", Json()),
        Vector: ("io.debezium.data.TiDBVectorFloat32", Vector()),
    }
    if type(full) in named:
        return named[type(full)]
    return ("double", Float(64)) if type_.startswith("decimal") else ("string", Text())


def test_images(run: Run) -> None:
    """Each value of each image, and the presence of images."""
    if run.name == f"disable-schema {NO_DDL}":
        return
    losses = run.losses()
    for truth, event in run.rows():
        for side, image in (("old", event.before), ("new", event.after)):
            if not any(side in column for column in truth["columns"]):
                assert image is None
                continue
            if side == "old" and run.name == "no-old-value" and event.op == "update":
                assert image is None
                continue
            assert image is not None
            assert image.complete
            assert not image.completed
            assert list(image.values) == [column["name"] for column in truth["columns"]]
            for column in truth["columns"]:
                _check_value(run, truth, column, column[side], image.values, losses)
    losses.assert_all_seen("double", "zeros", "null", "zero", "century", "base64", "sign")


def _check_value(
    run: Run, truth: Truth, column: Truth, true: Truth | None, image: Any, losses: Losses
) -> None:
    table, name = f"{truth['schema']}.{truth['table']}", column["name"]
    expected, actual = python_value(true), image[name]
    if same(expected, actual):
        return
    place = f"seq {truth['seq']}, {table}.{name} {column['type']}: {actual!r} is not {true}"
    if true is None:
        assert losses.covers(table, name, "null"), place
        default: Any = DEFAULTS[name]
        if not run.has_types:
            default = {"iu": -1, "de": 3.25, "b1": True}.get(name, default)
        assert same(default, actual), place
    elif isinstance(expected, InvalidValue):
        assert losses.covers(table, name, "zero"), place
        assert actual is None or str(actual)[:19] in ("1970-01-01", "1970-01-01 00:00:00"), place
    elif isinstance(expected, date):
        assert losses.covers(table, name, "century"), place
        century = 2000 if expected.year < 70 else 1900
        assert same(expected.replace(year=expected.year + century), actual), place
    elif not run.has_types:
        _check_by_schema_alone(column, true, expected, actual, losses, place)
    elif isinstance(actual, Decimal) and expected == actual:
        assert losses.covers(table, name, "zeros"), place
    else:
        assert losses.covers(table, name, "double"), place
        text = actual.text if isinstance(actual, InvalidValue) else actual
        assert float(expected) == float(text), place


def _check_by_schema_alone(
    column: Truth, true: Truth, expected: Any, actual: Any, losses: Losses, place: str
) -> None:
    if true["t"] == "bit":
        assert type(actual) is bool, place
        assert actual == expected, place
    elif true["t"] == "decimal":
        assert type(actual) is float, place
        assert actual == float(expected), place
    elif true["t"] == "uint":
        assert losses.covers("*", column["type"], "sign"), place
        assert actual == expected - 2**64, place
    else:
        assert losses.covers("*", column["type"], "base64"), place
        assert base64.b64decode(actual) == expected, place


def test_values_without_schema_stay_raw(run: Run) -> None:
    if run.name != f"disable-schema {NO_DDL}":
        return
    for message, events in run.decoded:
        (event,) = events
        assert isinstance(event, RowChange)
        assert message.value is not None
        text = message.value.decode("utf-8", "surrogateescape")
        payload = json.loads(text, parse_float=Decimal)["payload"]
        for image, wire in ((event.before, payload["before"]), (event.after, payload["after"])):
            assert (image and image.values) == wire


def test_a_missing_schema_may_fail() -> None:
    variant = load_variant("debezium", "disable-schema")
    decoder = open_decoder(**reading_options(variant), onMissingSchema="fail")
    row = next(message for message in variant.messages if message.kind == "row")
    (event,) = decoder.decode(row.message)
    assert "the type of id is unknown" in str(event.error)
    assert "onMissingSchema=raw" in str(event.error)
    for message in variant.messages:
        for event in decoder.decode(message.message):
            assert not hasattr(event, "error") or message is row, event


def test_defaults_that_may_stand_for_null_are_counted() -> None:
    variant = load_variant("debezium", "default")
    counts: Counter[str] = Counter()
    decoder = open_decoder(counts, **reading_options(variant))
    nulls = 0
    for message in variant.messages:
        decoder.decode(message.message)
        for truth in message.truth:
            nulls += sum(
                column[side] is None and truth["table"] == "defaults_nobin"
                for column in truth.get("columns", ())
                for side in ("old", "new")
                if side in column and column["name"] in DEFAULTS
            )
    (name,) = counts
    assert "NULL arrives as the default" in name
    assert 70 < nulls <= counts[name]
