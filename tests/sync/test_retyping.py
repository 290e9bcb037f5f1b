"""Decisions of sync about statements and rows with changed types, without Spark."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from pyspark.sql.types import BinaryType, DecimalType, IntegerType, StringType
from sync.test_planning import kept, plan, planner, statement, version

from pyspark_cdcfmt.sync.retyping import cast_sql
from pyspark_cdcfmt.sync.states import Cast, TableState
from pyspark_cdcfmt.sync.summary import TableStatement, TableVersion
from pyspark_cdcfmt.sync.table_merge import TableMerge

CREATE = statement(
    "CREATE TABLE orders (id INT PRIMARY KEY, price DECIMAL(12,4), name VARCHAR(20), "
    "state ENUM('a','b'))",
    "CREATE",
    5,
)
ROWS = {"id": "int", "price": "decimal(12,4)", "name": "varchar(20)", "state": "enum('a','b')"}
NARROW = "ALTER TABLE orders MODIFY price DECIMAL(10,2)"
LATER = ROWS | {"price": "decimal(10,2)"}


def batch(
    *given: TableVersion | TableStatement, after: TableMerge | None = None, **options: Any
) -> TableMerge:
    """Plan a batch of the table, after another one."""
    statements = tuple(each for each in given if isinstance(each, TableStatement))
    versions = [each for each in given if isinstance(each, TableVersion)]
    by = planner(**options)
    if after is not None and after.state.catching_up is None:
        after = kept(after)
    by.know([after.state] if after else [])
    by.define(statements)
    return plan(*versions, after=after, statements=statements, by=by)


def alter(query: str = NARROW, commit: int = 20, **more: Any) -> TableStatement:
    return statement(query, "ALTER", commit, **more)


def rows(at: int, types: dict[str, str] = ROWS, **more: Any) -> TableVersion:
    return version(types, first=(at, 0), **more)


def casts(made: TableMerge) -> list[tuple[str, tuple[int, ...]]]:
    assert made.state.halted is None, made.state.halted
    return [(cast.name, cast.at) for cast in made.casts]


PRICE = [("price", (0, 20, 1, 0, 0, 0, 1))]


def test_earlier_rows_are_converted() -> None:
    together = batch(CREATE, rows(10), alter(), rows(30, LATER))
    assert casts(together) == PRICE
    made = batch(CREATE, rows(10))
    later = batch(alter(), after=made)
    assert casts(later) == PRICE
    # The copy of another partition does nothing again, and late rows are converted, too.
    again = batch(alter(), rows(15), rows(30, LATER), after=later)
    assert casts(again) == []
    assert [cast.name for cast in again.state.casts] == ["price"]
    assert TableState.from_json(again.state.to_json()) == again.state


def test_renamed_and_converted_column() -> None:
    change = alter("ALTER TABLE orders CHANGE price cost DECIMAL(10,2)")
    types = {"cost" if name == "price" else name: text for name, text in LATER.items()}
    made = batch(CREATE, rows(10))
    changed = batch(change, rows(30, types), after=made)
    assert casts(changed) == PRICE
    assert changed.fills == [("cost", "CAST(`price` AS decimal(10,2))", PRICE[0][1])]
    evolved = batch(change, rows(30, types), after=made, schema_changes="evolve")
    assert casts(evolved) == PRICE
    assert evolved.retired == [("price", "cost")]


def test_rows_without_a_commit() -> None:
    place = {"place": "t/0"}
    made = batch(CREATE, rows(0, **place))
    same = batch(alter(commit=0, offset=5, **place), after=made)
    assert casts(same) == [("price", (0, 0, 1, 0, 5, 0, 1))]
    assert same.state.settled().casts == ()
    other = batch(alter(commit=0, offset=5, place="ddl/0"), after=made)
    assert "which rows are before it is unknown" in str(other.state.halted)
    add = alter("ALTER TABLE orders ADD m INT", 0, offset=5, place="ddl/0")
    not_null = alter("ALTER TABLE orders MODIFY m INT NOT NULL", 0, offset=6, place="ddl/0")
    waiting = batch(add, not_null, after=made)
    assert waiting.state.earlier == ()
    assert "MODIFY m INT NOT NULL: m: its values change" in str(waiting.state.halted)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("ALTER TABLE orders MODIFY id SMALLINT", "id: its values change, and it is of the key"),
        ("ALTER TABLE orders MODIFY state ENUM('a')", "ENUM('a','b') to ENUM('a'): members"),
        ("ALTER TABLE orders CHANGE name label INT", "name: VARCHAR(20) to INT"),
        ("ALTER TABLE orders ADD x INT, MODIFY price DATE", "price: DECIMAL(12,4) to DATE"),
        ("ALTER TABLE orders CONVERT TO CHARACTER SET latin1", "name: VARCHAR(20) to"),
        ("ALTER TABLE orders MODIFY price INT AS (id) STORED", "a generated column may change"),
        ("ALTER TABLE orders ALTER COLUMN price TYPE numeric(10,2)", "resume leaves these"),
        ("ALTER TABLE orders MODIFY (price NUMBER(10,2))", "resume leaves these"),
    ],
)
def test_reasons_to_halt_a_table(query: str, reason: str) -> None:
    made = batch(CREATE, rows(10))
    halted = batch(alter(query), after=made).state
    assert str(halted.halted).startswith(query)
    assert reason in str(halted.halted)
    # Nothing of it is kept, and resume passes it, also its copy on another partition.
    assert attrs.evolve(halted, halted=None, definitions=()) == attrs.evolve(
        kept(made).state, definitions=()
    )
    resumed = attrs.evolve(halted, halted=None, catching_up="now")
    passed = batch(alter(query), after=attrs.evolve(made, state=resumed))
    assert passed.state.halted is None
    assert batch(alter(query), after=passed).state.halted is None


def test_statements_of_other_databases_that_only_add_columns() -> None:
    made = batch(CREATE, rows(10))
    oracle = alter('ALTER TABLE "SHOP"."ORDERS" ADD ("N" NUMBER(9))')
    assert batch(oracle, after=made).state.halted is None
    server = alter("ALTER TABLE dbo.x.orders ALTER COLUMN price decimal(10,2)")
    assert batch(server, after=made).state.halted


def test_without_all_definitions_a_conversion_halts() -> None:
    halted = batch(alter(), after=batch(rows(10))).state.halted
    assert "as no CREATE TABLE of the topic defines the others" in str(halted)
    longer = alter("ALTER TABLE orders MODIFY name VARCHAR(50)")
    assert batch(longer, after=batch(rows(10))).state.halted is None
    bare = {"id": "int", "name": "varchar"}
    assert batch(longer, after=batch(rows(10, bare))).state.halted
    text = alter("ALTER TABLE orders MODIFY name TEXT")
    assert batch(text, after=batch(rows(10, bare))).state.halted is None


def test_dependent_generated_column() -> None:
    create = attrs.evolve(CREATE, query=f"{CREATE.query[:-1]}, twice INT AS (price * 2) STORED)")
    made = batch(create, rows(10, ROWS | {"twice": "int"}))
    for query in (NARROW, "ALTER TABLE orders MODIFY price DECIMAL(14,4)"):
        halted = batch(alter(query), after=made).state.halted
        assert "a generated column may change with it" in str(halted)


def test_members_stored_as_numbers() -> None:
    create = attrs.evolve(CREATE, query=CREATE.query.replace("'a','b'", "'a','b'"))
    moved = alter("ALTER TABLE orders MODIFY state ENUM('x','a','b')")
    names = batch(create, rows(10))
    assert batch(moved, after=names).state.halted is None
    numbers = batch(rows(10, ROWS | {"state": "enum"}))
    assert "the members are unknown" in str(batch(moved, after=numbers).state.halted)


@pytest.mark.parametrize(
    ("options", "action"),
    [
        ({"schema_changes": "exception"}, "halt"),
        ({"schema_changes": "ignore"}, "convert column"),
        ({"store": "scd2"}, "halt"),
        ({"store": "changelog"}, "convert column"),
    ],
)
def test_options(options: dict[str, str], action: str) -> None:
    made = batch(CREATE, rows(10), **options)
    assert batch(alter(), after=made, **options).log[-1].action == action


def test_default_charset_of_columns() -> None:
    made = batch(CREATE, rows(10))
    charset = batch(alter("ALTER TABLE orders DEFAULT CHARSET=latin1"), after=made)
    assert charset.state.halted is None
    modify = alter("ALTER TABLE orders MODIFY name VARCHAR(30)", 30)
    assert "may lose characters" in str(batch(modify, after=charset).state.halted)


def test_type_changes_seen_only_in_rows() -> None:
    made = batch(rows(10))
    narrower = batch(rows(30, LATER), after=made)
    reason = "column price is decimal(10,2) in rows, and was decimal(12,4), without a statement"
    assert reason in str(narrower.state.halted)
    wider = batch(rows(30, ROWS | {"price": "decimal(14,4)"}), after=made)
    assert wider.state.halted is None
    # Earlier rows of a lagging partition, and rows with an incomplete type.
    assert batch(rows(20), after=wider).state.halted is None
    assert batch(rows(20, LATER), after=wider).state.halted is None
    assert batch(rows(40, ROWS | {"price": "decimal"}), after=wider).state.halted is None
    back = batch(rows(40), after=wider)
    assert "and was decimal(14,4)" in str(back.state.halted)
    shorter = batch(rows(30, ROWS | {"name": "varchar(10)"}), after=made)
    assert "column name is varchar(10)" in str(shorter.state.halted)


@pytest.mark.parametrize(
    ("before", "after", "halts"),
    [
        ("int32", "int64", False),
        ("int32", "int16", True),
        ("io.debezium.time.MicroTimestamp", "io.debezium.time.Timestamp", True),
        ("io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp", False),
        ("io.debezium.time.MicroTimestamp", "io.debezium.time.Date", True),
        ("org.apache.kafka.connect.data.Decimal(12,4)", "decimal(10,2)", True),
        ("io.debezium.data.Enum('a','b')", "io.debezium.data.Enum('x','a','b')", False),
        ("io.debezium.data.Enum('a','b')", "io.debezium.data.Enum('a')", True),
        ("io.debezium.data.EnumSet('a','b')", "io.debezium.data.EnumSet('b','a')", True),
        # A statement also has the types of columns that it does not change.
        ("int32", "int(11)", False),
        ("string", "varchar(9)", False),
    ],
)
def test_types_of_connect(before: str, after: str, halts: bool) -> None:
    first, second = (
        attrs.evolve(rows(at, {"id": "int32", "c": text}), protocol="debezium")
        for at, text in ((10, before), (30, after))
    )
    halted = batch(second, after=batch(first)).state.halted
    assert bool(halted) is halts, halted


_NUMERIC = "org.apache.kafka.connect.data.Decimal(14,4)"
_OPEN = "io.debezium.data.VariableScaleDecimal"


@pytest.mark.parametrize(
    ("types", "target", "of_all_rows"),
    [
        # PostgreSQL's numeric without digits: as many as the target can have.
        ([_NUMERIC, _OPEN], "decimal(38,18)", None),
        ([_NUMERIC, _OPEN, _NUMERIC], "decimal(38,18)", None),
        (["org.apache.kafka.connect.data.Decimal(30,4)", _OPEN], "decimal(38,12)", None),
        (["org.apache.kafka.connect.data.Decimal(30,20)", _OPEN], "decimal(38,20)", None),
        (["org.apache.kafka.connect.data.Decimal(38,4)", _OPEN], "decimal(38,4)", None),
        (["int32", _OPEN], "decimal(38,18)", None),
        (["int64", _OPEN], "decimal(38,18)", None),
        # More fractional digits, and fewer of whole numbers.
        ([_NUMERIC, "org.apache.kafka.connect.data.Decimal(14,6)"], "decimal(16,6)", None),
        ([_NUMERIC, "org.apache.kafka.connect.data.Decimal(12,2)"], "it may not hold all", "none"),
        # What only text can hold.
        ([_NUMERIC, "org.apache.kafka.connect.data.Decimal(44,4)"], "start a new sync", "string"),
        ([_NUMERIC, "string"], "start a new sync", "string"),
        (["int32", "string"], "start a new sync", "string"),
        ([_NUMERIC, "double"], "column: c from", "none"),
        (["string", _NUMERIC], "column: c from string to decimal(14,4) (schema", "none"),
    ],
)
def test_numbers_with_other_digits(types: list[str], target: str, of_all_rows: str | None) -> None:
    versions = [
        attrs.evolve(rows(at, {"id": "int32", "c": text}), protocol="debezium")
        for at, text in zip(range(10, 90, 10), types, strict=False)
    ]
    made = batch(versions[0])
    for each in versions[1:]:
        made = batch(each, after=made)
    if made.state.halted is not None:
        assert target in made.state.halted
        # A new target of all rows, in one batch: the way out that the text names.
        made = batch(*versions)
        assert (made.state.halted is None) is (of_all_rows != "none"), made.state.halted
        target = str(of_all_rows)
    else:
        assert of_all_rows is None
    if target != "none":
        assert made.state.columns is not None
        assert made.state.columns["c"].dataType.simpleString() == target


def test_unknown_character_set() -> None:
    longer = alter("ALTER TABLE orders MODIFY name VARCHAR(50)")
    unknown = batch(longer, after=batch(rows(10)))
    assert unknown.state.halted is None
    (warning,) = (row.detail for row in unknown.log if row.level == "warning")
    assert warning.startswith(f"{longer.query}: name: its character set before is unknown")
    for made in (
        batch(longer, after=batch(CREATE, rows(10))),
        batch(longer, rows(30), after=batch(rows(10)), definitions={"shop.orders": CREATE.query}),
    ):
        assert not [row for row in made.log if row.level == "warning"]


def test_column_without_rows() -> None:
    made = batch(CREATE, rows(10))
    add = alter("ALTER TABLE orders ADD n INT DEFAULT 42, ADD m INT")
    rename = alter("ALTER TABLE orders RENAME COLUMN n TO o", 21)
    change = alter("ALTER TABLE orders CHANGE o p BIGINT, MODIFY m INT NOT NULL", 22)
    types = ROWS | {"p": "bigint", "m": "int"}
    for policy in ("lenient", "evolve"):
        waiting = batch(add, rename, change, after=made, schema_changes=policy)
        filled = batch(rows(30, types), after=waiting, schema_changes=policy)
        assert filled.state.halted is None
        assert [(name, value) for name, value, _ in filled.fills] == [
            ("p", "TRY_CAST('42' AS bigint)"),
            ("m", "TRY_CAST('0' AS int)"),
        ]
    # One that the rows have again only by its second definition.
    gone = alter("ALTER TABLE orders DROP n", 23)
    again = alter("ALTER TABLE orders ADD n INT DEFAULT 43", 24)
    second = batch(add, gone, again, rows(30, ROWS | {"n": "int", "m": "int"}), after=made)
    assert [value for name, value, _ in second.fills if name == "n"] == ["TRY_CAST('43' AS int)"]
    # And one whose value the source converts by its own rules.
    text = alter("ALTER TABLE orders MODIFY n VARCHAR(9)", 25)
    unknown = batch(add, text, rows(30, ROWS | {"n": "varchar(9)", "m": "int"}), after=made)
    assert "MODIFY n VARCHAR(9): n: its values change" in str(unknown.state.halted)


@pytest.mark.parametrize(
    ("steps", "type_", "expected"),
    [
        (
            (("cut", ("5",)), ("trim", ())),
            StringType(),
            "CAST(rtrim(substring(`c`, 1, 5)) AS string)",
        ),
        ((("null", ("",)),), BinaryType(), "CAST(coalesce(`c`, X'') AS binary)"),
        ((("pad", ("4",)),), BinaryType(), "CAST(rpad(`c`, 4, X'00') AS binary)"),
        (
            (("clip", ("-128", "127")),),
            IntegerType(),
            "CAST(IF(`c` < -128BD, -128BD, IF(`c` > 127BD, 127BD, `c`)) AS int)",
        ),
        ((("round", ("2",)),), DecimalType(12, 4), "CAST(round(`c`, 2) AS decimal(12,4))"),
    ],
)
def test_conversions_in_sql(steps: Any, type_: Any, expected: str) -> None:
    assert cast_sql(Cast("c", steps, ()), "`c`", type_) == expected
