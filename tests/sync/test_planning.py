"""Decisions of sync for a table, from its state and a batch alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import attrs
import pytest
from pyspark.sql import Row
from pyspark.sql.types import StructType

from cdcfmt_core.errors import OptionError, SourceError
from pyspark_cdcfmt.sync.columns import ColumnPlanner
from pyspark_cdcfmt.sync.delta import DeltaTarget
from pyspark_cdcfmt.sync.expressions import At, LogPlace
from pyspark_cdcfmt.sync.job import added_columns, open_store, sync
from pyspark_cdcfmt.sync.names import TableName, check_pattern, path_of, target_of
from pyspark_cdcfmt.sync.options import OPTIONS, SyncOptions
from pyspark_cdcfmt.sync.planning import Planner, Spread, spread_statements
from pyspark_cdcfmt.sync.snapshots import check_names
from pyspark_cdcfmt.sync.states import SNAPSHOT_RANK, TableState
from pyspark_cdcfmt.sync.summary import TableStatement, TableVersion
from pyspark_cdcfmt.sync.table_merge import TableMerge
from pyspark_cdcfmt.sync.tombstones import RecentDeletes

ORDERS: TableName = ("shop", None, "orders")
TYPES = {"id": "int", "name": "varchar(20)"}


def planner(
    types: Mapping[str, str] | None = None, there: StructType | None = None, **options: Any
) -> Planner:
    wanted = SyncOptions.of({"into": "lake.{table}", "checkpoint": "c", **options})
    target = DeltaTarget(None)  # type: ignore[arg-type]
    store = open_store(wanted, target, None)  # type: ignore[arg-type]
    added = added_columns(wanted, store)
    return Planner(
        wanted, ColumnPlanner(wanted, store.needs_key, added, types or {}, lambda _: there)
    )


def position(commit: int, offset: int, place: str | None, epoch: int = 0) -> At:
    _, slash, partition = (place or "").rpartition("/")
    return At(epoch, commit, int(partition) if slash and partition.isdigit() else 0, offset)


def version(
    types: Mapping[str, str] = TYPES,
    keys: tuple[str, ...] = ("id",),
    first: tuple[int, int] = (10, 0),
    place: str | None = None,
    log: LogPlace | None = None,
    epoch: int = 0,
) -> TableVersion:
    columns = tuple(
        Row(name=name, source_type=text, nullable=None, key=False) for name, text in types.items()
    )
    at = position(*first, place, epoch)
    return TableVersion("canal-json", columns, keys, frozenset({place} - {None}), at, at, log)  # type: ignore[arg-type]


def statement(
    query: str,
    type_: str,
    commit: int = 20,
    offset: int = 0,
    place: str | None = None,
    of_snapshot: bool = False,
    log: LogPlace | None = None,
    epoch: int = 0,
) -> TableStatement:
    at = position(commit, offset, place, epoch)
    sequence = (at.epoch, commit, 1, at.partition, offset, 0, 1)
    return TableStatement(ORDERS, query, type_, sequence, place, None, of_snapshot, log)


def plan(
    *versions: TableVersion,
    after: TableMerge | None = None,
    statements: tuple[TableStatement, ...] = (),
    name: TableName = ORDERS,
    by: Planner | None = None,
    **options: Any,
) -> TableMerge:
    made = by or planner(**options)
    return made.plan(after and after.state, name, versions, statements, None)  # type: ignore[arg-type]


def actions(given: TableMerge) -> list[tuple[str, str]]:
    return [(row.action, row.detail) for row in given.log]


LAKE = {"into": "/lake/{database}/{table}", "checkpoint": "/lake/cp/one", "control": "/lake/state"}


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        (("shop", None, "_delta_log"), LAKE, "_delta_log is the folder of Delta's own log"),
        (("_Delta_Log", None, "orders"), LAKE, "is the folder of Delta's own log"),
        (("shop", None, "x" * 300), LAKE, "its name has 300 bytes, and file systems take 255"),
        (("cp", None, "one"), LAKE, "the folder of the option checkpoint would be in the target"),
        (("CP", None, "One"), LAKE, "the folder of the option checkpoint would be in the target"),
        (("state", None, "held"), LAKE, "option control would be in the target, or around it"),
        (("cp", None, "x"), LAKE | {"into": "/lake/{database}/y/{table}"}, None),
        (("shop", None, "y" * 256), {"into": "a.{table}"}, "its name has 256 bytes"),
        (("s" * 253, None, "t"), {"into": "{database}.{table}"}, "its name has 256 bytes"),
        (("s" * 252, None, "y" * 255), {"into": "{database}.{table}"}, None),
        (("shop", None, "t"), {"into": "{schema}.{table}"}, "set into without that field"),
        # Names that are unusual, and no danger.
        (("shop", None, "_change_data"), LAKE, None),
        (("..", None, "."), LAKE, None),
        (("shop", None, "a/../../b"), LAKE, None),
        (("shop", None, "tab\there\x00"), LAKE, None),
        (("shop", None, "\ud800" * 80), LAKE, None),
        (("shop", None, "_delta_log"), {"into": "lake.{table}"}, None),
    ],
)
def test_invalid_target_column_names(
    name: TableName, options: dict[str, str], reason: str | None
) -> None:
    made = plan(version(), name=name, **options)
    assert (made.state.halted is None) if reason is None else (reason in str(made.state.halted))
    assert len(str(made.state.halted)) < 1000
    path = path_of(made.state.target)
    assert path is None or path.startswith("/lake/")
    assert path is None or {".", ".."}.isdisjoint(path.split("/"))


def test_columns_are_added_and_widened() -> None:
    first = plan(version())
    assert actions(first) == [("create", "`lake`.`orders`")]
    wider = {"ID": "bigint", "name": "varchar(99)", "more": "decimal(10,2)"}
    second = plan(version(wider, ("id",)), after=first)
    assert actions(second) == [
        ("widen column", "id from int to bigint"),
        ("add column", "more decimal(10,2)"),
    ]
    assert second.state.columns is not None
    assert second.state.columns.simpleString() == (
        "struct<id:bigint,name:string,more:decimal(10,2)>"
    )
    # A partition that lags has rows of before.
    assert actions(plan(version(), after=second)) == []


def test_a_column_without_a_clear_type_keeps_the_one_it_has() -> None:
    first = plan(version({**TYPES, "price": "decimal(10,2)", "note": "int"}))
    # No look at values is needed: there are none here.
    second = plan(version({**TYPES, "price": "decimal", "note": ""}), after=first)
    assert second.state.columns == first.state.columns


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("ignore", [("ignore column", "more int")]),
        ("exception", [("halt", "add column: more int (schema_changes=exception)")]),
    ],
)
def test_policies_of_schema_changes(policy: str, expected: list[tuple[str, str]]) -> None:
    first = plan(version())
    more = version({**TYPES, "more": "int"})
    second = plan(more, after=first, schema_changes=policy)
    assert actions(second) == expected
    assert second.state.columns == first.state.columns
    # Said once.
    assert actions(plan(more, after=second, schema_changes=policy)) == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (version({"id": "int", "name": "blob"}), "name from string to binary"),
        # By DROP PRIMARY KEY: two rows may have the same id.
        (version(keys=()), "some messages name no key, others (id): set keys"),
        (version(keys=("name",)), "several keys, (id) and (name)"),
        (version({"id": "int", "a": "int", "A": "int"}), "a and A differ only in case"),
        (version({"id": "int", "_Sequence": "int"}), "set metadata_prefix"),
        (version({"id": "int", "_source": "int"}), "adds a column _source: set metadata_prefix"),
        (version({"id": "int", "_rescued": "int"}), "set metadata_prefix"),
        (version(keys=("idd",)), "several keys, (id) and (idd)"),
    ],
)
def test_reasons_to_halt_a_table(given: TableVersion, reason: str) -> None:
    first = plan(version())
    halted = plan(given, after=first)
    assert reason in str(halted.state.halted)
    # It keeps its position: nothing else of the batch is decided.
    assert attrs.evolve(halted.state, halted=None) == first.state
    assert [row.action for row in halted.log] == ["halt"]


def test_column_named_like_an_added_column() -> None:
    halted = plan(version(), store="scd2", start_at="Name")
    assert halted.state.halted == "sync adds a column name: set start_at"


def test_names_of_keys_match_without_case() -> None:
    first = plan(version(), keys={"shop.orders": ["ID"]})
    assert first.state.keys == ("id",)
    # The key columns of the messages, in two spellings; the target has the first one.
    types = {"Id": "int", "name": "varchar(20)"}
    second = plan(version(types, ("Id",)), version(), after=kept(plan(version(types, ("Id",)))))
    assert (second.state.halted, second.state.keys) == (None, ("Id",))
    # Kept by a run that took the spelling of the option.
    old = attrs.evolve(first, state=attrs.evolve(first.state, keys=("ID",)))
    assert plan(version(), after=old).state.keys == ("id",)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["idd"], "keys names idd, which the table lacks; did you mean id?"),
        ("id, name", None),
        (["name"], "keys names (name), and the key of the target is (id): choose a new target"),
        ("Id", None),
    ],
)
def test_keys_from_options(keys: Any, reason: str | None) -> None:
    named = plan(version(keys=()), keys={"shop.orders": keys})
    is_lacking = "lacks" in str(reason)
    assert named.state.halted == (reason if is_lacking else None)
    made = plan(version(keys=("id", "name") if keys == "id, name" else ("id",)))
    assert plan(version(), after=made, keys={"shop.orders": keys}).state.halted == reason
    if keys == "id, name":
        # Tombstones have the columns in the order of before.
        turned = plan(version(), after=made, keys={"shop.orders": ["name", "id"]})
        assert (turned.state.halted, turned.state.keys) == (None, ("id", "name"))
    # A changelog needs no key, but a given key must exist.
    free = plan(version(), after=made, keys={"shop.orders": keys}, store="changelog")
    assert free.state.halted == (reason if is_lacking else None)


def test_key_missing_in_some_rows() -> None:
    assert "name no key: set keys" in str(plan(version(keys=())).state.halted)
    both = version(), version(keys=())
    assert "some messages name no key, others (id)" in str(plan(*both).state.halted)
    assert plan(*both, keys={"shop.orders": "id"}).state.halted is None
    # A bad row, which has no key to match.
    assert plan(version(), version({"name": "text"}, keys=())).state.halted is None
    # The key of a changelog is that of its last rows.
    log = plan(*both, store="changelog")
    assert (log.state.halted, log.state.keys) == (None, ("id",))
    log = plan(version(keys=()), after=log, store="changelog")
    assert (log.state.halted, log.state.keys) == (None, ())


def test_key_missing_in_rows() -> None:
    halted = plan(version(keys=("idd",)))
    reason = "the messages name the key idd, which the table lacks; did you mean id?"
    assert halted.state.halted == reason


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tables": "orders"}, "option tables: 'orders' is not database.table"),
        ({"exclude": "shop.tmp_*,orders"}, "option exclude: 'orders' is not database.table"),
        ({"into": "lake.{table"}, "option into: 'lake.{table': expected '}'"),
        ({"into": "lake.{table!x}"}, "has the field 'table!x'"),
        ({"keys": "shop.audit=id"}, "option keys: 'shop.audit=id' is not a mapping"),
        ({"keys": {"shop.audit": []}}, "option keys: shop.audit has no columns"),
        ({"keys": {"shop.audit": "id,ID"}}, "option keys: shop.audit names a column twice"),
        ({"keys": {"shop.audit": [5]}}, "option keys: [5] is not a list of names"),
        ({"store": "scd2", "start_at": "x", "end_at": "X"}, "options start_at and end_at"),
        ({"partition_by": "day"}, "option partition_by is for store=changelog"),
        ({"store": "scd2", "deletes": "soft"}, "option deletes is for store=scd1"),
        ({"start_at": "x"}, "option start_at is for store=scd2"),
        ({"snapshot_commit_ts": 5}, "option snapshot_commit_ts: there is no snapshot"),
        ({"source": "dump"}, "source is 'dump', not a mapping"),
        ({"source": {"ontruncate": "row"}}, "onTruncate, .*: set on_truncate, an option of sync"),
        ({"source": {"jsonAs": "string"}}, "source has the option jsonAs, .*: leave it out"),
        ({"source": {"timeas": "interval"}}, "option timeAs: Delta has no intervals"),
        ({"source": {"enumAs": "names"}}, "option enumAs: 'names' is not one of"),
        ({"source": {"includeHeaders": True}}, "source has the option includeHeaders, .*: leave"),
    ],
)
def test_wrong_jobs(options: dict[str, Any], error: str) -> None:
    given = {"into": "{table}", "checkpoint": "c", "source": {"path": "dump"}, **options}
    with pytest.raises(OptionError, match=error if ".*" in error else re.escape(error)):
        # It is checked before anything is asked of Spark.
        sync(None, **given)  # type: ignore[arg-type]


def test_statements() -> None:
    truncate = statement("TRUNCATE TABLE orders", "TRUNCATE")
    done = plan(version(), statements=(truncate,))
    assert done.truncates == [truncate.sequence]
    # Its copies of other partitions.
    assert plan(after=done, statements=(truncate,)).truncates == []
    assert plan(version(), statements=(truncate,), on_truncate="halt").state.halted
    drop = statement("DROP TABLE orders", "ERASE")
    assert "DROP TABLE orders" in str(plan(version(), statements=(drop,)).state.halted)
    # There was no table to drop, but older rows may still arrive.
    later = plan(version(first=(30, 0)), statements=(drop,))
    assert later.state.halted is None
    assert later.state.truncates == (drop.sequence,)
    rename = statement("RENAME TABLE old TO orders", "RENAME")
    assert "old name" in str(plan(statements=(rename,)).state.halted)
    query = "ALTER TABLE orders ADD FOREIGN KEY (c) REFERENCES t (id) ON DELETE  set null"
    # TiDB sends the changes of a foreign key.
    for place, warnings in (("t/0", ["ON DELETE  set null"]), (None, [])):
        log = plan(statements=(statement(query, "ALTER", place=place),)).log
        assert [row.detail.split(":")[0] for row in log if row.level == "warning"] == warnings
    partition = statement("ALTER TABLE orders TRUNCATE PARTITION p0", "ALTER")
    assert "adds or removes rows" in str(plan(version(), statements=(partition,)).state.halted)


def test_a_truncate_without_order_halts() -> None:
    truncate = statement("TRUNCATE TABLE orders", "TRUNCATE", 0, 5, "t/0")
    done = plan(version(first=(0, 3), place="t/0"), statements=(truncate,))
    assert done.truncates
    # Offsets of another partition are not compared with it later: that one may lag.
    settled = kept(done)
    assert settled.state.truncates == ()
    assert not plan(version(first=(0, 9), place="t/0"), after=settled).state.halted
    late = plan(version(first=(0, 9), place="t/1"), after=settled)
    assert "rows on t/1 arrived after a TRUNCATE on t/0" in str(late.state.halted)
    assert late.state.truncated
    resumed = attrs.evolve(late, state=attrs.evolve(late.state, halted=None, catching_up="now"))
    passed = plan(version(first=(0, 9), place="t/1"), after=resumed)
    assert [row.action for row in passed.log] == ["pass"]
    assert not plan(version(first=(0, 9), place="t/1"), after=passed).state.halted
    halted = plan(version(first=(0, 3), place="t/1"), statements=(truncate,))
    assert "different partitions" in str(halted.state.halted)


def test_files_have_no_order() -> None:
    first = plan(version(first=(0, 9), place="file a"))
    assert not plan(version(first=(0, 12), place="file a"), after=first).state.halted
    assert not plan(version(first=(0, 1), place="t/0"), after=first).state.halted
    second = plan(version(first=(0, 1), place="file b"), after=first)
    assert "in file a and file b" in str(second.state.halted)


def test_topics_have_no_order() -> None:
    """The offsets of a new topic are lower: its changes would have no effect."""
    first = plan(version(first=(0, 9), place="old/0"), version(first=(0, 9), place="old/1"))
    assert not first.state.halted
    second = plan(version(first=(0, 1), place="new/0"), after=first)
    assert "are in the topics new, old, whose offsets" in str(second.state.halted)
    state = attrs.evolve(second.state, halted=None, catching_up="now")
    passed = plan(version(first=(0, 1), place="new/0"), after=attrs.evolve(second, state=state))
    assert [row.action for row in passed.log] == ["pass"]
    for place in ("old/0", "new/1"):
        assert not plan(version(first=(0, 2), place=place), after=kept(passed)).state.halted
    assert not plan(version(place="new/0"), after=first, store="changelog").state.halted


def test_snapshot_with_commit_requires_commits_of_rows() -> None:
    first = plan(version())
    mark = (0, 15, SNAPSHOT_RANK, 0, 0, 0, 0)
    begun = attrs.evolve(first, state=attrs.evolve(first.state, truncates=(mark,)))
    assert kept(begun).state.snapshot == mark
    assert not plan(version(first=(16, 0)), after=begun).state.halted
    halted = plan(version(first=(0, 9), place="t/0"), after=begun)
    assert "snapshot_commit_ts" in str(halted.state.halted)


def test_statements_at_the_start_of_a_snapshot_have_no_effect() -> None:
    drop = statement("DROP TABLE IF EXISTS orders", "ERASE", 0, 5, "ddl/0", of_snapshot=True)
    assert not plan(version(first=(0, 3), place="t/1"), statements=(drop,)).state.halted


ALTER = "ALTER TABLE orders CHANGE name title VARCHAR(20), DROP COLUMN n"
NUMBERED = {**TYPES, "n": "int"}


def kept(given: TableMerge) -> TableMerge:
    """The state that the next batch finds, as it is kept."""
    state = TableState.from_json(given.state.settled().to_json())
    assert state == given.state.settled()
    return attrs.evolve(given, state=state)


def evolve(*versions: TableVersion, **more: Any) -> TableMerge:
    return plan(*versions, schema_changes="evolve", **more)


def test_an_added_column_has_its_default_in_earlier_rows() -> None:
    types = {**TYPES, "n": "int", "at": "timestamp"}
    query = "ALTER TABLE orders ADD n INT NOT NULL, ADD at TIMESTAMP DEFAULT now()"
    alter = statement(query, "ALTER")
    halted = plan(after=plan(version()), statements=(alter,))
    assert str(halted.state.halted).startswith(
        f"{query}: at: the text of its default does not show"
    )
    assert "copy the source's values of at into the target" in str(halted.state.halted)
    resumed = attrs.evolve(halted.state, halted=None, catching_up="now")
    waiting = kept(plan(after=attrs.evolve(halted, state=resumed), statements=(alter,)))
    assert [row.action for row in waiting.log if row.level == "warning"] == ["pass"]
    assert not plan(after=waiting, statements=(alter,)).state.halted, "a copy"
    added = plan(version(types, first=(30, 0)), after=waiting)
    fill = ("n", "TRY_CAST('0' AS int)", alter.sequence)
    assert added.fills == [fill]
    assert plan(version(types, first=(40, 0)), after=kept(added)).fills == []
    late = plan(version(first=(15, 0)), after=kept(added), statements=(alter,))
    assert late.fills == [fill], "once, though the statement is repeated"
    alter = statement("ALTER TABLE orders ADD n INT NOT NULL, ADD at TIMESTAMP NULL", "ALTER")
    both = version(), version(types, first=(30, 0))
    assert plan(*both, statements=(alter,)).fills == [fill]
    for policy in ({"store": "changelog"}, {"schema_changes": "ignore"}):
        assert plan(*both, statements=(alter,), **policy).fills == []
    # Offsets order rows of the statement's partition alone.
    alter = statement("ALTER TABLE orders ADD n INT DEFAULT 7", "ALTER", 0, 5, "t/0")
    same, other = (version(first=(0, 3), place=place) for place in ("t/0", "t/1"))
    done = plan(same, version(types, first=(0, 9), place="t/0"), statements=(alter,))
    assert [text for _, text, _ in done.fills] == ["TRY_CAST('7' AS int)"]
    assert kept(done).state.earlier == ()
    assert "which rows are before it is unknown" in str(
        plan(other, statements=(alter,)).state.halted
    )


def test_a_renamed_column_has_its_values_in_earlier_rows() -> None:
    rename = statement("ALTER TABLE orders RENAME COLUMN name TO title", "ALTER")
    again = statement("ALTER TABLE orders CHANGE title label VARCHAR(20)", "ALTER", 25)
    types = {"id": "int", "label": "varchar(20)"}
    waiting = kept(plan(after=plan(version()), statements=(rename, again)))
    added = plan(version(types, first=(30, 0)), after=waiting)
    fill = ("label", "CAST(`name` AS string)", again.sequence)
    assert added.fills == [fill]
    late = plan(version(first=(15, 0)), after=kept(added), statements=(rename, again))
    assert late.fills == [fill]
    assert {row.level for row in late.log} == {"info"}, "repeated"
    # Of another type, which the source converts by its own rules.
    changed = statement("ALTER TABLE orders CHANGE name n INT", "ALTER")
    other = plan(
        version(), version({"id": "int", "n": "int"}, first=(30, 0)), statements=(changed,)
    )
    assert "name: varchar(20) to INT: varchar to int" in str(other.state.halted)
    # Rows from before it keep the values of the other name.
    swap = statement("ALTER TABLE orders RENAME COLUMN name TO n, RENAME COLUMN n TO name", "ALTER")
    swapped = plan(after=plan(version(NUMBERED)), statements=(swap,))
    halted = plan(version(NUMBERED, first=(30, 0)), after=kept(swapped)).state.halted
    assert "column name was dropped or renamed, and rows have it again" in str(halted)


def test_columns_are_renamed_and_dropped() -> None:
    first = evolve(version(NUMBERED))
    alter = statement(ALTER, "ALTER")
    late = version(NUMBERED, first=(19, 0))
    second = evolve(late, after=first, statements=(alter,))
    assert actions(second)[2:] == [("rename column", "name to title"), ("drop column", "n")]
    assert second.retired == [("name", "title"), ("n", None)]
    assert second.state.columns is not None
    assert second.state.columns.names == ["id", "title"]
    # The statement comes on every partition, and one of them lags.
    title = version({"id": "int", "title": "varchar(20)"}, first=(21, 0))
    third = evolve(late, title, after=kept(second), statements=(alter,))
    assert actions(third) == [("statement", ALTER)]
    again = evolve(version(NUMBERED, first=(21, 0)), after=kept(third))
    assert "column name was renamed to title" in str(again.state.halted)
    # And on, in the other partition's order.
    other = statement("ALTER TABLE orders RENAME COLUMN title TO label", "ALTER", 30)
    fourth = evolve(late, after=kept(third), statements=(other,))
    assert fourth.state.columns is not None
    assert fourth.state.columns.names == ["id", "label"]
    # In the batch that makes the table nothing of it is there to be altered.
    whole = evolve(late, title, statements=(alter, other))
    assert whole.state.columns is not None
    assert whole.state.columns.names == ["id", "label"]


def logged(pos: int, server: int = 1) -> LogPlace:
    return LogPlace(frozenset({server}), (13, "binlog.000001", pos))


def test_a_drop_before_all_rows_of_a_new_table() -> None:
    """By their places in the binlog: Debezium's statements are on a partition of their own."""

    def rows(pos: int | None, server: int = 1) -> TableVersion:
        given = version(first=(0, 3), place="t/1", log=pos and logged(pos, server))
        return attrs.evolve(given, first_log=given.log)

    query = "DROP TABLE IF EXISTS orders"
    drop = statement(query, "ERASE", 0, 5, "ddl/0", log=logged(20))
    together = plan(rows(30), statements=(drop,))
    for both in (together, plan(rows(30), after=plan(statements=(drop,)))):
        assert not both.state.halted
        assert not plan(rows(40), after=kept(both)).state.halted
        late = plan(rows(10), after=kept(both))
        assert "after a TRUNCATE on ddl/0" in str(late.state.halted)
    for before in (rows(10), rows(None), rows(30, 2)):
        assert plan(before, statements=(drop,)).state.halted == f"{query} at the source"
    again = plan(
        statements=(drop, attrs.evolve(drop, log=logged(50), sequence=(0, 0, 0, 0, 6, 0, 0)))
    )
    assert plan(rows(40), after=kept(again)).state.halted
    assert not plan(rows(60), after=kept(again)).state.halted
    unknown = plan(statements=(attrs.evolve(drop, log=logged(50, 2)), drop))
    assert plan(rows(60), after=kept(unknown)).state.halted


def test_binlog_positions_order_rows_of_several_partitions() -> None:
    def rows(offset: int, log: LogPlace | None, name: str = "name") -> TableVersion:
        types = {"id": "int", name: "varchar(20)"}
        return version(types, first=(0, offset), place="shop.orders/0", log=log)

    def rename(offset: int, text: str, pos: int) -> TableStatement:
        return statement(text, "ALTER", 0, offset, "shop/0", log=logged(pos))

    # A snapshot has no server.
    first = kept(evolve(rows(1, logged(50, server=0))))
    alter = rename(7, "ALTER TABLE orders RENAME COLUMN name TO title", 70)
    second = evolve(rows(2, logged(60)), after=first, statements=(alter,))
    assert second.retired == [("name", "title")]
    assert second.state.columns is not None
    assert second.state.columns.names == ["id", "title"]
    # Rows that lag, and those that a connector sends again.
    late = kept(evolve(rows(9, logged(60)), rows(8, logged(80), "title"), after=kept(second)))
    assert (late.state.halted, late.log) == (None, [])
    # It sends statements again, too.
    drop = rename(8, "ALTER TABLE orders DROP COLUMN title", 90)
    dropped = kept(evolve(after=late, statements=(drop,)))
    again = evolve(after=dropped, statements=(attrs.evolve(alter, sequence=(0, 0, 1, 0, 9, 0, 1)),))
    assert actions(again) == [("statement", alter.query)]
    # A name that comes again, a log of another server, and none.
    for log in (logged(71), logged(60, server=2), None):
        halted = evolve(rows(10, log), after=kept(second))
        assert "name was renamed to title" in str(halted.state.halted)
    refused = evolve(rows(2, None), after=first, statements=(alter,))
    assert ("refuse", "warning") in [(row.action, row.level) for row in refused.log]


def test_column_kept_by_lenient_is_added_again() -> None:
    """Rows that were not changed since have the values of before the DROP in it."""
    drop = statement("ALTER TABLE orders DROP COLUMN N", "ALTER")
    late, without = version(NUMBERED, first=(19, 0)), version(first=(21, 0))
    second = plan(late, after=plan(version(NUMBERED)), statements=(drop,))
    assert second.state.columns is not None
    assert second.state.columns.names == [*NUMBERED]
    third = plan(late, without, after=kept(second), statements=(drop,))
    assert third.state.halted is None
    again = version(NUMBERED, first=(22, 0))
    halted = plan(late, again, after=kept(third))
    assert (
        "column n was dropped or renamed, and rows have it again"
        in str(halted.state.halted).lower()
    )
    resumed = attrs.evolve(halted, state=attrs.evolve(halted.state, halted=None, catching_up="now"))
    fourth = plan(again, after=resumed)
    assert fourth.state.halted is None
    assert plan(again, after=kept(fourth)).state.halted is None
    # Whose choice it is to leave the target as it is.
    given = {"schema_changes": "ignore"}
    ignored = plan(late, after=plan(version(NUMBERED), **given), statements=(drop,), **given)
    assert plan(again, after=kept(ignored), **given).state.halted is None


def test_unordered_rows_of_a_dropped_column_do_not_halt() -> None:
    def rows(offset: int, place: str, log: LogPlace | None = None) -> TableVersion:
        given = version(NUMBERED, first=(0, offset), place=place, log=log)
        return attrs.evolve(given, first_log=log)

    query = "ALTER TABLE orders DROP COLUMN n"
    drop = statement(query, "ALTER", 0, 5, "t/0", log=logged(20))
    both = plan(rows(1, "t/0"), rows(1, "t/1"))
    dropped = kept(plan(after=both, statements=(drop,)))
    assert plan(rows(6, "t/0"), after=dropped).state.halted
    for lagging in (rows(4, "t/0"), rows(6, "t/1"), rows(6, "t/1", logged(10))):
        assert plan(lagging, after=dropped).state.halted is None
    assert plan(rows(6, "t/1", logged(30)), after=dropped).state.halted


@pytest.mark.parametrize(
    ("alter", "more", "expected"),
    [
        (statement("ALTER TABLE orders RENAME COLUMN id TO no", "ALTER"), {}, "halt"),
        (statement(ALTER, "ALTER", 0, 5, "ddl/0"), {"place": "t/0", "first": (0, 1)}, "refuse"),
        (statement("ALTER TABLE orders RENAME COLUMN name TO n", "ALTER"), {}, "refuse"),
    ],
)
def test_unsupported_column_renames(
    alter: TableStatement, more: dict[str, Any], expected: str
) -> None:
    first = evolve(version(NUMBERED, **more))
    done = evolve(version(NUMBERED, **more), after=first, statements=(alter,))
    assert expected in [row.action for row in done.log]
    assert done.state.columns == first.state.columns


def test_resuming_table_skips_the_reason_of_its_halt() -> None:
    drop = statement("DROP TABLE orders", "ERASE")
    halted = plan(version(), statements=(drop,))
    resumed = attrs.evolve(halted, state=attrs.evolve(halted.state, halted=None, catching_up="now"))
    passed = plan(version(), after=resumed, statements=(drop,))
    assert [row.action for row in passed.log] == ["truncate", "create"]
    assert passed.truncates == [drop.sequence]
    ignored = plan(version(), after=resumed, statements=(drop,), on_drop="ignore")
    assert [row.action for row in ignored.log] == ["ignore", "create"]
    settled = passed.state.settled()
    assert (settled.catching_up, settled.caught_up) == (None, "now")


def test_dropped_database() -> None:
    # TiCDC's Simple has the name in the statement alone.
    for drop in (
        attrs.evolve(statement("/* app */ drop  database shop", "QUERY"), name=(name, None, ""))
        for name in ("shop", "")
    ):
        given = {drop.name: [drop]}
        own = attrs.evolve(drop, name=ORDERS, type="ERASE")
        tables: list[TableName] = [ORDERS, ("other", None, "orders")]
        spread = spread_statements(given, tables, lambda name: bool(name[2]))
        assert spread == ([], [Spread(drop, own)])
        assert given == {ORDERS: [own]}


def test_statement_that_empties_other_tables() -> None:
    items: TableName = ("shop", None, "items")
    drop = statement("DROP TABLE IF EXISTS other.a, `items`, orders, shop.Orders", "ERASE")
    given = {ORDERS: [drop], items: [statement("ALTER TABLE items ADD a INT", "ALTER", 30)]}
    tables: list[TableName] = [ORDERS, items, ("shop", None, "ORDERS"), ("shop", None, "b")]
    spread_statements(given, tables, bool)
    assert given[ORDERS] == [drop]
    # In their order.
    assert given[items][0] == attrs.evolve(drop, name=items)
    assert [each.type for each in given[items]] == ["ERASE", "ALTER"]
    replace = statement("CREATE OR REPLACE TABLE orders (id INT PRIMARY KEY)", "CREATE")
    given = {ORDERS: [replace]}
    spread_statements(given, tables, bool)
    assert given == {ORDERS: [replace, attrs.evolve(replace, type="ERASE")]}
    # A server that keeps names in lower case, and a statement that does not.
    truncate = statement("TRUNCATE Orders", "TRUNCATE")
    truncate = attrs.evolve(truncate, name=("shop", None, "Orders"))
    given = {truncate.name: [truncate]}
    spread_statements(given, [ORDERS, items], lambda name: name != truncate.name)
    assert given == {ORDERS: [attrs.evolve(truncate, name=ORDERS)]}


@pytest.mark.parametrize(
    ("query", "table", "halted"),
    [
        ("RENAME TABLE a TO b, c TO d", "b", {"b", "d"}),
        ("RENAME TABLE a TO b, c TO d", "a", {"b", "d"}),
        ("ALTER TABLE a ADD x INT, RENAME b", "a", {"b"}),
        ("RENAME TABLE a WAIT 5 TO b, c NOWAIT TO d", "a", {"b", "d"}),
        ("ALTER TABLE a RENAME COLUMN x TO y", "a", set()),
        ("RENAME TABLE a TO `b", "b", {"b"}),
    ],
)
def test_renamed_tables(query: str, table: str, halted: set[str]) -> None:
    type_ = "ALTER" if query.startswith("ALTER") else "RENAME"
    rename = attrs.evolve(statement(query, type_), name=("shop", None, table))
    given = {rename.name: [rename]}
    spread_statements(given, [], bool)
    plans = [plan(name=name, statements=each) for name, each in given.items()]
    assert {each.state.name[2] for each in plans if each.state.halted} == halted


def test_a_table_halts_when_it_is_renamed() -> None:
    """Its rows have another name at the source, and rows of its name are those of another table."""
    old: TableName = ("shop", None, "old")
    for query, table in [
        ("RENAME TABLE Orders TO old", old),
        ("ALTER TABLE orders RENAME a", ORDERS),
    ]:
        rename = attrs.evolve(statement(query, "RENAME"), name=table)
        given: dict[TableName, list[TableStatement]] = {table: [rename]}
        _, (spread,) = spread_statements(given, [ORDERS, old], bool)
        assert spread.query == "DROP TABLE `orders`"
        assert query in str(plan(version(), statements=(*given[ORDERS],)).state.halted)
        ignored = plan(version(), statements=(*given[ORDERS],), on_drop="ignore")
        assert not ignored.state.halted
    swap = statement("RENAME TABLE orders TO old, copy TO orders", "RENAME")
    assert spread_statements({ORDERS: [swap]}, [ORDERS], bool)[1] == []


def test_names_of_targets() -> None:
    made = planner(into="{database}_{table}")
    names: list[TableName] = [("a_b", None, "c"), ("a", None, "b_c")]
    first, second = (plan(version(), name=name, by=made) for name in names)
    assert first.state.target == second.state.target == "`a_b_c`"
    assert "is that of a_b.c" in str(second.state.halted)
    # A table that has no target yet takes the new one.
    other = plan(version(), after=second, name=names[1], by=planner(into="{database}.{table}"))
    assert other.state.target == "`a`.`b_c`"
    with pytest.raises(OptionError, match=r"option into: the target of a_b.c is `a_b_c` in this"):
        planner(into="{database}.{table}").know([first.state])
    planner(into="{database}.{table}", exclude="a_b.c").know([first.state])
    odd = target_of("lake.{table}", ("shop", None, "a b"))
    assert odd.startswith("`lake`.`a_b_")
    assert odd != target_of("lake.{table}", ("shop", None, "a.b"))
    assert target_of("/lake/{table}", ("shop", None, "a")) == "delta.`/lake/a`"
    for wrong in ("lake.all", "lake.{tabel}"):
        with pytest.raises(OptionError, match="option into"):
            check_pattern(wrong)


def test_snapshots_require_a_table_of_the_source() -> None:
    options = {"into": "{table}", "checkpoint": "c", "tables": "shop.*", "exclude": "shop.tmp_*"}
    wanted = SyncOptions.of(options)
    check_names(["shop.dbo.orders"], SyncOptions.of(options | {"tables": "shop.*.*"}))
    check_names(["shop.orders"], wanted)
    for left_out in ("other.orders", "shop.tmp_orders"):
        with pytest.raises(OptionError, match=f"snapshot of {left_out}: tables and exclude leave"):
            check_names([left_out], wanted)


def test_states_round_trip() -> None:
    truncate = statement("TRUNCATE TABLE orders", "TRUNCATE", 0, 5, "t/0")
    state = plan(version(place="t/0", first=(0, 9)), statements=(truncate,)).state
    assert TableState.from_json(state.to_json()) == state


@pytest.mark.parametrize("damage", [('"name": "id"', '"name": 1e300'), ('"id"', "{}"), ("[", "7")])
def test_a_damaged_state_is_an_error_that_says_so(damage: tuple[str, str]) -> None:
    text = plan(version(place="t/0", first=(0, 9))).state.to_json()
    assert damage[0] in text
    with pytest.raises(SourceError, match="state of a table in the folder control is damaged"):
        TableState.from_json(text.replace(*damage))


def test_options_equal_the_docs_table() -> None:
    assert [field.name for field in attrs.fields(SyncOptions)] == [each.name for each in OPTIONS]


def test_the_last_deletes_of_a_table() -> None:
    recent = RecentDeletes()
    recent.add(((commit,), f"k{commit}") for commit in (30, 10, 20))
    assert recent.after((30,)) == []
    assert recent.after((10,)) == [((20,), "k20"), ((30,), "k30")]
    recent.add(((100 + commit,), "k") for commit in range(998))
    assert recent.after((0,)) is None, "one is forgotten"
    assert len(recent.after((10,)) or ()) == 1000
    # Earlier tombstones are known only by their last position.
    assert RecentDeletes((30,)).after((29,)) is None
    assert RecentDeletes((30,)).after((30,)) == []


def test_statements_of_a_schema_affect_its_tables_only() -> None:
    dbo, audit, other = (("app", schema, "orders") for schema in ("dbo", "audit", None))
    for query, emptied in {
        "TRUNCATE TABLE orders": set(),
        "TRUNCATE TABLE dbo.orders": {dbo},
        "DROP TABLE orders, dbo.orders": {dbo},
        "RENAME TABLE dbo.orders TO dbo.old": {dbo},
    }.items():
        type_ = "TRUNCATE" if query.startswith("TRUNCATE") else "ERASE"
        own = attrs.evolve(statement(query, type_), name=audit)
        _, spread = spread_statements({audit: [own]}, [dbo, audit, other], bool)
        assert {each.own.name for each in spread} == emptied, query


@pytest.mark.parametrize(
    ("table", "types"),
    [("a${env:HOME}", TYPES), ("orders", {**TYPES, "x${spark.app.name}": "int"})],
)
def test_names_that_the_session_would_replace(table: str, types: dict[str, str]) -> None:
    """Some computes refuse to leave variables in SQL as they are."""
    name = ("shop", None, table)
    for has_variables in (False, True):
        plans = planner()
        plans.has_variables = has_variables
        halted = plans.plan(None, name, [version(types)], [], Mock()).state.halted
        assert ("spark.sql.variable.substitute" in (halted or "")) is has_variables


def whole(types: Mapping[str, str], at: int, *, nullable: bool = True, **more: Any) -> TableVersion:
    """Rows whose messages have a whole schema, and no statements, as those of PostgreSQL."""
    given = version(types, first=(0, at), place="t/0", **more)
    columns = tuple(
        Row(**{**column.asDict(), "nullable": nullable and column.name != "id"})
        for column in given.columns
    )
    return attrs.evolve(given, columns=columns)


ADDED = {**TYPES, "grade": "int"}


@pytest.mark.parametrize(
    ("types", "nullable", "reason"),
    [
        (ADDED, False, "column grade is new in rows, and NOT NULL"),
        ({"id": "int", "title": "varchar(20)"}, True, "column title is new in rows, which lack na"),
        ({"id": "int", "grade": "int"}, True, None),
        (ADDED, True, None),
        ({"id": "int"}, True, None),
    ],
)
def test_new_columns_without_a_statement(
    types: Mapping[str, str], nullable: bool, reason: str | None
) -> None:
    begun = kept(plan(whole(TYPES, 1)))
    for made in (
        plan(whole(types, 9, nullable=nullable), after=begun),
        # In one batch with rows from before it, also on another partition.
        plan(whole(TYPES, 1), whole(types, 9, nullable=nullable)),
    ):
        halted = made.state.halted
        assert bool(halted) is bool(reason)
        assert (halted or "").startswith(reason or "")
        unknown = [detail for action, detail in actions(made) if action == "unknown default"]
        assert bool(unknown) is ("grade" in types and not reason)
    ignored = plan(whole(types, 9, nullable=nullable), after=begun, schema_changes="ignore")
    assert ignored.state.halted is None
    # Neither a changelog nor a new table has rows that lack the column.
    assert plan(whole(types, 9, nullable=nullable)).state.halted is None
    log = plan(whole(TYPES, 1), whole(types, 9, nullable=nullable), store="changelog")
    assert log.state.halted is None


def test_resumed_columns_without_a_statement() -> None:
    renamed = {"id": "int", "title": "varchar(20)"}
    halted = plan(whole(renamed, 9), after=kept(plan(whole(TYPES, 1))))
    resumed = attrs.evolve(halted.state, halted=None, catching_up="2026-01-01")
    made = plan(whole(renamed, 9), after=TableMerge(resumed, ()))
    assert made.state.halted is None
    assert [each.name for each in made.state.kept] == ["name"]
    again = plan(whole({**renamed, "more": "varchar(20)"}, 20), after=kept(made))
    assert again.state.halted is None
    back = plan(whole({**renamed, "name": "varchar(20)"}, 30), after=kept(again))
    assert "name was dropped or renamed, and rows have it again" in (back.state.halted or "")


def test_deletes_with_only_their_key_lack_no_columns() -> None:
    assert plan(whole({"id": "int"}, 1), whole(ADDED, 9, nullable=False)).state.halted is None
