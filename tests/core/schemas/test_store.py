"""Schemas by position: the schema of a row, and shared objects."""

from __future__ import annotations

import pickle

import pytest

from cdcfmt_core.caches import table_size
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.schemas.store import MAX_SCHEMA_BYTES, SchemaStore
from cdcfmt_core.types import Int
from cdcfmt_toolkit.schema_lookups import Lookups


def schema(*names: str, table: str = "t") -> TableSchema:
    return TableSchema("d", table, tuple(Column(name, "int", Int(32)) for name in names))


def filled(*records: tuple[TableSchema, int]) -> SchemaStore:
    store = SchemaStore()
    for table, at in records:
        store.add(SchemaRecord(table, (at,)))
    return store


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_row_finds_the_newest_schema_before_it(order: tuple[int, ...]) -> None:
    records = [(schema("a"), 10), (schema("a", "b"), 20), (schema("b"), 30)]
    store = filled(*(records[index] for index in order))
    assert len(store) == 3
    found = {at: store.find("d", "t", (at,)) for at in (9, 10, 19, 20, 29, 30, 99)}
    names = {at: table and table.column_names for at, table in found.items()}
    assert names == {
        9: None,
        10: ("a",),
        19: ("a",),
        20: ("a", "b"),
        29: ("a", "b"),
        30: ("b",),
        99: ("b",),
    }
    newest = store.find("d", "t", None)
    assert newest is found[99]


def test_unchanged_schemas_are_one_object() -> None:
    store = filled((schema("a"), 10), (schema("a"), 20), (schema("b"), 30), (schema("b"), 30))
    assert store.find("d", "t", (10,)) is store.find("d", "t", (25,))
    first = store.find("d", "t", (30,))
    store.add(SchemaRecord(schema("b"), (30,)))
    assert store.find("d", "t", (30,)) is first


def test_last_schema_of_a_position_counts() -> None:
    store = filled((schema("a"), 10), (schema("b"), 10))
    found = store.find("d", "t", (10,))
    assert found is not None
    assert found.column_names == ("b",)
    assert len(store) == 1


def test_streams_and_names_are_distinct() -> None:
    store = SchemaStore()
    assert not store
    store.add(SchemaRecord(schema("a"), (len("f"), "f", 4), "one"))
    assert store
    assert store.find("d", "t", (1, "f", 4), stream="one") is not None
    assert store.find("d", "t", (1, "f", 4), stream="two") is None
    assert store.find("d", "T", (1, "f", 4), stream="one") is None
    assert store.find("d", "t", (1, "f", 4), stream="one", schema="s") is None


def test_all_schemas_of_a_position_are_found() -> None:
    store = filled((schema("a"), 10), (schema("a"), 20), (schema("b"), 20), (schema("c"), 30))
    first, second = store.at("d", "t", (20,))
    assert (first.column_names, second.column_names) == (("a",), ("b",))
    assert store.at("d", "t", (10,)) == (first,)
    assert store.at("d", "t", (15,)) == store.at("d", "u", (10,)) == ()
    assert store.at("d", "t", (10,), stream="other") == ()
    assert store.at("d", "t", (10,), schema="s") == ()


def test_repeated_schemas_change_only_the_order_of_eviction() -> None:
    store = filled((schema("a"), 10), (schema("b"), 10))
    known = store.at("d", "t", (10,))
    store.add(SchemaRecord(schema("b"), (10,)))
    assert store.at("d", "t", (10,)) is known
    store.add(SchemaRecord(schema("a"), (10,)))
    assert store.at("d", "t", (10,)) == known[::-1]
    assert store.find("d", "t", (10,)) is known[0]


def test_schemas_of_one_position_are_bounded() -> None:
    store = filled(*((schema(f"c{number}"), 10) for number in range(50)))
    names = [table.column_names[0] for table in store.at("d", "t", (10,))]
    assert names == [f"c{number}" for number in range(40, 50)]


SIZE = 300 + table_size(schema("a"))


def store_of(*names: str) -> SchemaStore:
    """A store with room for three schemas, after the versions of several tables in turn."""
    store = SchemaStore(3 * SIZE + SIZE // 2)
    for number, name in enumerate(names):
        store.add(SchemaRecord(schema(f"c{number}", table=name), (number,)))
    return store


def test_least_recently_used_table_loses_its_oldest_schema_first() -> None:
    store = store_of("a", "b", "a")
    assert len(store) == 3
    store.find("d", "b", (1,))
    store.find("d", "a", (2,))
    store.add(SchemaRecord(schema("c3", table="c"), (3,)))
    kept = [(table, at) for table in "abc" for at in range(4) if store.at("d", table, (at,))]
    assert (kept, len(store)) == ([("a", 0), ("a", 2), ("c", 3)], 3)
    store.add(SchemaRecord(schema("c4", table="c"), (4,)))
    kept = [(table, at) for table in "abc" for at in range(5) if store.at("d", table, (at,))]
    assert (kept, len(store)) == ([("a", 2), ("c", 3), ("c", 4)], 3)


def test_evicted_schema_is_an_error_not_an_older_schema() -> None:
    store = store_of("a", "a", "b", "c")
    newest = store.find("d", "a", (1,))
    assert newest is not None
    with pytest.raises(MissingSchemaError, match=r"d.a@0 not seen, or forgotten.*maxCachedSchemaB"):
        store.find("d", "a", (0,))
    assert store.find("d", "never seen", (5,)) is None
    assert str(store.missing("d", "c", (9,))) == "schema d.c@9 not seen"
    # Added again, it is older than the schemas evicted after it.
    store = store_of("a", "b", "c", "d", "e")
    store.add(SchemaRecord(schema("x", table="a"), (-1,)))
    with pytest.raises(MissingSchemaError):
        store.find("d", "a", (5,))
    assert "forgotten" in str(store.missing("d", "a", (0,)))


@pytest.mark.parametrize(
    "large",
    [
        pytest.param(schema("a", table="t" * MAX_SCHEMA_BYTES), id="a name"),
        pytest.param(schema(*["c" * 1_000] * 20_000), id="columns"),
    ],
)
def test_oversized_schema_is_evicted_at_once(large: TableSchema) -> None:
    store = filled((schema("a"), 1))
    changes = store.changes
    store.add(SchemaRecord(large, (2,)))
    assert store.changes > changes
    assert store.bytes < 2_000
    assert store.at("d", large.table, (2,)) == ()
    with pytest.raises(MissingSchemaError, match=f"it takes more than {MAX_SCHEMA_BYTES} bytes"):
        store.find("d", large.table, (3,))
    assert store.find("d", "u", (3,)) is None
    assert max(len(name or "") for key in store._forgotten for name in key) <= 200


def test_names_of_evicted_tables_are_bounded() -> None:
    store = SchemaStore(20 * SIZE)
    for number in range(1_000):
        store.add(SchemaRecord(schema("a", table=f"t{number}"), (1,)))
    assert store.bytes <= 20 * SIZE
    assert len(store._forgotten) < 20
    for number in (0, 500, 999):
        with pytest.raises(MissingSchemaError):
            store.find("d", f"t{number}", None)


def test_store_is_picklable() -> None:
    store = pickle.loads(pickle.dumps(filled((schema("a"), 1), (schema("b"), 2))))
    found = store.find("d", "t", (2,))
    assert found.columns == (Column("b", "int", Int(32)),)
    store.add(SchemaRecord(schema("b"), (3,)))
    assert store.find("d", "t", None) is found


def test_pickled_store_is_small() -> None:
    names = [f"a_column_with_a_name_{number}" for number in range(50)]
    store = filled(*((schema(*names, f"c{at}"), at) for at in range(100)))
    sent = pickle.dumps(store)
    assert len(sent) < 20_000
    # An unchanged store reuses its pickle.
    assert store.__reduce__()[1][1] is store.__reduce__()[1][1]
    store.add(SchemaRecord(schema("new"), (100,)))
    assert len(pickle.loads(sent)) == 100
    assert pickle.loads(pickle.dumps(store)).find("d", "t", None).column_names == ("new",)


def test_copies_are_independent() -> None:
    store = filled((schema("a"), 10), (schema("a", "b"), 20))
    copied = store.copy()
    assert [*copied.tables()] == [*store.tables()]
    copied.add(SchemaRecord(schema("c"), (15,)))
    copied.add(SchemaRecord(schema("c", table="u"), (1,)))
    assert [table.column_names for table in store.tables()] == [("a",), ("a", "b")]
    assert (len(store), len(copied)) == (2, 4)


def test_schema_added_after_a_row_is_detected() -> None:
    store = filled((schema("a"), 10), (schema("a", table="other"), 10))
    lookups = store.lookups = Lookups()
    t, other, new = ("d", None, "t"), ("d", None, "other"), ("d", None, "new")
    store.add(SchemaRecord(schema("b"), (20,)))
    assert not lookups.is_late(t), "no row had looked"
    store.find("d", "t", (20,))
    assert store.at("d", "new", (1,)) == ()
    store.add(SchemaRecord(schema("b"), (20,)))
    store.add(SchemaRecord(schema("b", table="other"), (20,)))
    assert not any(map(lookups.is_late, (t, other, new))), "it says what was known"
    store.add(SchemaRecord(schema("c"), (30,)))
    store.add(SchemaRecord(schema("c", table="new"), (1,)))
    assert [*map(lookups.is_late, (t, other, new))] == [True, False, True]
    lookups.begin()
    assert not any(map(lookups.is_late, (t, other, new)))
    store.add(SchemaRecord(schema("d"), (40,)))
    assert lookups.is_late(t), "rows looked before"


def test_schemas_of_one_table_equal_those_of_all() -> None:
    store = filled((schema("a"), 10), (schema("b"), 10), (schema("c"), 20))
    store.add(SchemaRecord(schema("x", table="other"), (10,)))
    store.add(SchemaRecord(schema("s"), (10,), "another stream"))
    part = SchemaStore()
    for record in store.records_of(store.keys_by_table()["d", None, "t"]):
        part.add(record)
    assert len(part) == 3
    for at in (9, 10, 15, 20):
        assert part.find("d", "t", (at,)) == store.find("d", "t", (at,))
        assert part.at("d", "t", (at,)) == store.at("d", "t", (at,))
        stream = {"stream": "another stream"}
        assert part.find("d", "t", (at,), **stream) == store.find("d", "t", (at,), **stream)
