"""Filters: table names and patterns, kinds, operations, commit_ts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.errors import DecodeError, OptionError
from cdcfmt_core.filters import (
    EventFilter,
    parse_table_name,
    split_name,
    table_names,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("shop.orders", ("shop", "orders")),
        ("shop.public.orders", ("shop", "public", "orders")),
        (" shop . orders ", ("shop", "orders")),
        ("`a.b`.`c d`", ("a.b", "c d")),
        ("`a``b`.t", ("a`b", "t")),
        ("Shop.ORDERS", ("Shop", "ORDERS")),
        ("库.表", ("库", "表")),
        ("`*`.`?`", ("*", "?")),
        ("my table.t", ("my table", "t")),
        ("orders", ("orders",)),
    ],
)
def test_table_names(text: str, parts: tuple[str, ...]) -> None:
    assert parse_table_name(text) == parts


@pytest.mark.parametrize(
    "text",
    ["", "a.b.c.d", ".t", "a.", "a..b", "a.`b", "a.b`", "`a`b.c", "``.t", "a.b.", " . "],
)
def test_invalid_table_names(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_table_name(text, option="table")
    assert repr(text) in str(caught.value)
    assert "backticks" in str(caught.value)


NAMES = st.text(min_size=1, max_size=10)


@given(st.lists(NAMES, min_size=2, max_size=3).map(tuple))
def test_every_name_can_be_written_in_backticks(parts: tuple[str, ...]) -> None:
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
    assert parse_table_name(quoted) == parts
    # Quoted, it is not a pattern: it matches only itself.
    event_filter = EventFilter(include_tables=(quoted,))
    database, schema, table = split_name(parts)
    assert event_filter.wants_table(database, table, schema)
    assert not event_filter.wants_table(database, table + "x", schema)


def wanted(
    tables: list[str], *, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
) -> list[str]:
    event_filter = EventFilter(include_tables=include, exclude_tables=exclude)
    found = []
    for name in tables:
        database, *schema, table = name.split(".")
        if event_filter.wants_table(database, table, schema[0] if schema else None):
            found.append(name)
    return found


TABLES = ["shop.orders", "shop.order_items", "Shop.orders", "crm.orders", "shop.public.orders"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ((), (), TABLES),
        (("shop.orders",), (), ["shop.orders"]),
        (("shop.*",), (), ["shop.orders", "shop.order_items"]),
        (("*.orders",), (), ["shop.orders", "Shop.orders", "crm.orders"]),
        (("[Ss]hop.orders", "crm.?rders"), (), ["shop.orders", "Shop.orders", "crm.orders"]),
        (("s*.*.orders",), (), ["shop.public.orders"]),
        (("shop.o*s",), (), ["shop.orders", "shop.order_items"]),
        (("shop.o*r*s",), ("*.*_items",), ["shop.orders"]),
        ((), ("shop.*", "*.*.*"), ["Shop.orders", "crm.orders"]),
        (("`shop`.`*`",), (), []),
        (("shop.orders",), ("shop.orders",), []),
    ],
)
def test_patterns(include: tuple[str, ...], exclude: tuple[str, ...], expected: list[str]) -> None:
    assert wanted(TABLES, include=include, exclude=exclude) == expected


def test_a_pattern_matches_whole_names_of_any_letters() -> None:
    event_filter = EventFilter(include_tables=("a*.t",))
    assert event_filter.wants_table("a\nb", "t")
    assert not event_filter.wants_table("a", "t\n")
    assert not event_filter.wants_table("xa", "t")


@pytest.mark.parametrize("option", ["include_tables", "exclude_tables"])
def test_a_bad_pattern_names_its_option(option: str) -> None:
    spelling = {"include_tables": "includeTables", "exclude_tables": "excludeTables"}[option]
    with pytest.raises(OptionError, match=f"option {spelling}: 'orders' is not"):
        EventFilter(**{option: ("orders",)})  # type: ignore[arg-type]


def test_one_exact_table() -> None:
    event_filter = EventFilter(table=("shop", "orders"))
    assert event_filter.wants("row", "shop", "orders")
    assert not event_filter.wants("row", "shop", "Orders")
    assert not event_filter.wants("row", "shop", "orders", "public")
    assert not event_filter.wants("ddl", "shop", "")
    assert EventFilter(table=("a", "s", "t")).wants("row", "a", "t", "s")


@pytest.mark.parametrize("kind", ["watermark", "transaction", "heartbeat", "corrupt"])
def test_table_filters_keep_events_without_a_table(kind: str) -> None:
    event_filter = EventFilter(table=("shop", "orders"), exclude_tables=("*.*",))
    assert event_filter.wants(kind)
    assert not event_filter.wants("row", "shop", "orders")


def test_kinds_and_ops() -> None:
    event_filter = EventFilter(kinds=frozenset({"row", "ddl"}), ops=frozenset({"delete"}))
    assert event_filter.wants("row", "a", "b", op="delete")
    assert not event_filter.wants("row", "a", "b", op="insert")
    assert event_filter.wants("ddl", "a", "b")
    assert not event_filter.wants("watermark", commit_ts=1)
    assert not event_filter.wants("corrupt")


def test_the_commit_ts_range_is_inclusive() -> None:
    event_filter = EventFilter(starting_commit_ts=10, ending_commit_ts=20)
    assert [ts for ts in (9, 10, 20, 21) if event_filter.wants("row", "a", "b", commit_ts=ts)] == [
        10,
        20,
    ]
    assert EventFilter(starting_commit_ts=0).wants_commit_ts(0)
    assert not EventFilter(ending_commit_ts=0).wants_commit_ts(1)


def test_a_range_over_events_without_commit_ts_is_an_error() -> None:
    event_filter = EventFilter(table=("shop", "orders"), ending_commit_ts=5)
    with pytest.raises(
        DecodeError, match="startingCommitTs/endingCommitTs are set, but this event"
    ):
        event_filter.wants("row", "shop", "orders")
    # An event dropped by another filter needs no commit_ts; a corrupt message has none.
    assert not event_filter.wants("row", "shop", "others")
    assert event_filter.wants("corrupt")
    assert EventFilter().wants("row", "shop", "orders")


def test_the_range_of_times_of_the_source() -> None:
    event_filter = EventFilter(starting_source_time=2_000, ending_source_time=4_000)
    # A commit_ts has the time, so a decoder can skip the row before it is read.
    wanted = [ms for ms in range(6) if event_filter.wants("row", "a", "b", commit_ts=ms << 18)]
    assert wanted == [2, 3]
    assert event_filter.wants("row", "a", "b")
    assert event_filter.rows_refused == 4
    assert event_filter.wants_source_time("row", 2 << 18, 9_000)
    assert not event_filter.wants_source_time("row", None, 4_000)
    assert event_filter.rows_refused == 5
    assert event_filter.wants_source_time("schema", None, None)
    assert event_filter.wants_source_time("corrupt", None, None)
    with pytest.raises(DecodeError, match="startingSourceTime/endingSourceTime are set, but this"):
        event_filter.wants_source_time("row", None, None)


def test_table_names_for_errors() -> None:
    text = table_names([("shop", "orders"), ("a b", "c.d"), ("crm", "public", "x$")])
    assert text == "`a b`.`c.d`, crm.public.x$, shop.orders"


def test_a_schema_without_a_commit_ts_is_in_every_range() -> None:
    event_filter = EventFilter(starting_commit_ts=10, exclude_tables=("a.x",))
    assert event_filter.wants("schema", "a", "b")
    assert not event_filter.wants("schema", "a", "x")
    assert not event_filter.wants("schema", "a", "b", commit_ts=9)


def test_rows_of_other_tables_are_counted() -> None:
    wanted = EventFilter(table=("d", "t"), kinds=frozenset({"row"}))
    assert wanted.wants("row", "d", "t")
    assert not wanted.wants("watermark")
    assert wanted.rows_refused == 0
    assert not wanted.wants("row", "d", "other")
    assert wanted.rows_refused == 1
    assert wanted == EventFilter(table=("d", "t"), kinds=frozenset({"row"}))


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(table=("shop", "orders"), exclude_tables=("shop.*",)),
        EventFilter(table=("shop", "orders"), include_tables=("shop.o", "a.*")),
        EventFilter(starting_commit_ts=5, ending_commit_ts=4),
        EventFilter(starting_source_time=5, ending_source_time=5),
    ],
)
def test_contradictory_filters_are_errors(wanted: EventFilter) -> None:
    with pytest.raises(OptionError, match=r"exclude table shop\.orders|is before|is not after"):
        wanted.check()


def test_satisfiable_filters_are_accepted() -> None:
    EventFilter(table=("a", "b"), include_tables=("x.y", "a.*"), exclude_tables=("a.c",)).check()
    EventFilter(starting_commit_ts=5, ending_commit_ts=5).check()
