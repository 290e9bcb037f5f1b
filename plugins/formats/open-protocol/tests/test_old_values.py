"""Old values of TiCDC's new architecture are right or absent.

The shapes are those of pingcap/ticdc, ``writeColumnFieldValueIfUpdated``: the cell of a
column that became NULL loses its name, and an empty or zero old value is written as null.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_messages import ID, ROW_KEY, data_of, decode_row, the_error

from cdcfmt_core.events import Image, RowChange
from cdcfmt_core.types import InvalidValue


def text(value: str | None, flags: int = 64) -> dict[str, Any]:
    return {"t": 15, "f": flags, "v": value}


def number(value: int | None) -> dict[str, Any]:
    return {"t": 3, "f": 65, "v": value}


def update(new: dict[str, Any], old: str, architecture: str = "auto", **key: Any) -> RowChange:
    """An update whose ``p`` is this text, as equal names cannot be in a dict."""
    return decode_row(wire_of(new, old), ROW_KEY | key, ticdcArchitecture=architecture)


def wire_of(new: dict[str, Any], old: str) -> str:
    return '{"u":' + data_of({"id": ID, **new}).decode() + ',"p":' + old + "}"


def old_values(row: RowChange) -> dict[str, Any]:
    assert row.op == "update"
    assert row.before is not None
    return row.before.values


# Which TiCDC wrote it


def test_nulls_of_the_classic_architecture_are_null() -> None:
    """Also for a table without row ids, where a null has no other sign of being NULL."""
    new, old = {"a": text("x")}, '{"a":{"t":15,"f":64,"v":null}}'
    known = Image({"id": 1, "a": None}, True, ("id",))
    assert update(new, old, "classic").before == known
    assert update(new, old, rid=1).before == known
    for architecture in ("auto", "new"):
        row = update(new, old, architecture)
        assert row.before == Image({"id": 1}, False, ("id",))
        assert row.extra == {"before_unknown": ["a"]}


def test_messages_of_the_other_architecture_are_errors() -> None:
    new = {"a": text(None)}
    nameless = wire_of(new, '{"t":15,"f":64,"v":"b"}')
    error = the_error([ROW_KEY], [nameless], ticdcArchitecture="classic")
    assert "p.t: a member without a column's name" in str(error)
    assert "set ticdcArchitecture to auto or new" in str(error)
    named = wire_of(new, '{"a":{"t":15,"f":64,"v":"b"}}')
    error = the_error([ROW_KEY | {"rid": 3}], [named], ticdcArchitecture="new")
    assert "rid: only the classic architecture" in str(error)


# Cells without a name


def test_one_column_became_null() -> None:
    row = update({"a": text(None), "b": text("x")}, '{"t":15,"f":64,"v":"b"}')
    assert row.before == Image({"id": 1, "a": "b", "b": "x"}, True, ("id", "b"))
    assert row.after == Image({"id": 1, "a": None, "b": "x"})
    assert row.extra is None


def test_several_columns_became_null() -> None:
    new = {"a": text(None), "n": number(None), "b": text(None), "c": text("x"), "d": number(5)}
    row = update(
        new,
        '{"t":15,"f":64,"v":"old a","t":3,"f":65,"v":7,"t":15,"f":64,"v":"old b",'
        '"c":{"t":15,"f":64,"v":"old c"}}',
    )
    assert old_values(row) == {"id": 1, "a": "old a", "n": 7, "b": "old b", "c": "old c", "d": 5}
    assert row.before is not None
    assert row.before.complete
    assert row.before.completed == ("id", "d")


def test_ambiguous_null_column_is_not_completed() -> None:
    # One of a and b was NULL before.
    new = {"a": text(None), "b": text(None), "n": number(None), "c": text("x")}
    row = update(new, '{"t":15,"f":64,"v":"b"}')
    assert row.before == Image({"id": 1, "n": None, "c": "x"}, False, ("id", "n", "c"))
    assert row.extra == {"before_unknown": ["a", "b"]}
    assert row.after == Image({"id": 1, "a": None, "b": None, "n": None, "c": "x"})


def test_named_cells_are_not_taken_for_nulls() -> None:
    new = {"a": text(None), "b": text(None)}
    row = update(new, '{"b":{"t":15,"f":64,"v":"y"},"t":15,"f":64,"v":"x"}')
    assert old_values(row) == {"id": 1, "a": "x", "b": "y"}


def test_null_column_is_found_by_type_flags_and_handle() -> None:
    new = {"a": text(None), "b": text(None, 65), "c": {**text(None), "h": True}}
    assert old_values(update(new, '{"t":15,"f":65,"v":"\\\\x00"}')) == {
        "id": 1,
        "a": None,
        "b": b"\0",
        "c": None,
    }
    assert old_values(update(new, '{"t":15,"h":true,"f":64,"v":"k"}'))["c"] == "k"


def test_columns_of_those_names() -> None:
    names = ("t", "f", "v")
    new = {name: text("new") for name in names} | {"a": text(None)}
    cells = ",".join(f'"{name}":{{"t":15,"f":64,"v":"old {name}"}}' for name in names)
    named = {name: f"old {name}" for name in names}
    assert old_values(update(new, "{" + cells + "}")) == {"id": 1, "a": None, **named}
    nameless = '"t":15,"f":64,"v":"old a"'
    for members in (f"{nameless},{cells}", f"{cells},{nameless}"):
        assert old_values(update(new, "{" + members + "}")) == {"id": 1, "a": "old a", **named}
    only_t = update({"t": text("new")}, '{"t":{"t":15,"f":64,"v":"old"}}')
    assert old_values(only_t) == {"id": 1, "t": "old"}


@pytest.mark.parametrize(
    ("old", "field"),
    [
        ('{"t":15,"f":64,"v":"x","t":15,"f":64,"v":"y"}', "value[0].p"),
        ('{"t":3,"f":64,"v":1}', "value[0].p"),
        ('{"f":64,"v":"x"}', "value[0].p.f"),
        ('{"t":15,"t":15}', "value[0].p.v"),
        ('{"t":15,"f":64}', "value[0].p.v"),
        ('{"t":15,"f":64,"f":64,"v":"x"}', "value[0].p.f"),
        ('{"t":15,"f":64,"v":"x","w":1}', "value[0].p.w"),
        ('{"t":[],"f":64,"v":"x"}', "value[0].p.t"),
        ('{"t":"15","f":64,"v":"x"}', "value[0].p.t"),
        ('{"t":15,"f":{},"v":"x"}', "value[0].p"),
        ('{"t":15,"f":64,"v":5}', "value[0].p.a.v"),
    ],
)
def test_impossible_cells_are_errors(old: str, field: str) -> None:
    value = '{"u":' + data_of({"id": ID, "a": text(None)}).decode() + ',"p":' + old + "}"
    assert the_error([ROW_KEY], [value]).field == field


# Empty and zero values


@pytest.mark.parametrize(
    ("code", "new", "empty"),
    [
        (15, "x", ""),
        (254, "x", ""),
        (252, "eA==", ""),
        (247, 1, 0),
        (248, 1, 0),
        (11, "00:00:01", timedelta()),
        (10, "2024-01-01", InvalidValue("0000-00-00")),
        (225, "[1]", []),
    ],
)
def test_nulls_in_not_null_columns(code: int, new: Any, empty: Any) -> None:
    row = update({"c": {"t": code, "f": 0, "v": new}}, f'{{"c":{{"t":{code},"f":0,"v":null}}}}')
    assert old_values(row) == {"id": 1, "c": empty}
    assert row.extra is None


@pytest.mark.parametrize(
    ("code", "flags", "new"),
    [
        (15, 64, "x"),
        (252, 65, "eA=="),
        (247, 64, 1),
        (246, 65, "1.50"),
        (12, 65, "2024-01-01 00:00:00"),
        # Not NULL; the number of digits of its zero is unknown.
        (246, 1, "1.50"),
        (7, 1, "2024-01-01 00:00:00"),
    ],
)
def test_nulls_that_may_be_empty_values(code: int, flags: int, new: Any) -> None:
    cell = {"t": code, "f": flags, "v": new}
    old = f'{{"c":{{"t":{code},"f":{flags},"v":null}}}}'
    row = update({"c": cell, "n": number(1)}, old)
    assert row.before == Image({"id": 1, "n": 1}, False, ("id", "n"))
    assert row.extra == {"before_unknown": ["c"]}
    # The older TiCDC, which sends a row id, writes null for NULL only.
    row = update({"c": cell, "n": number(1)}, old, rid=1)
    assert row.before == Image({"id": 1, "c": None, "n": 1}, True, ("id", "n"))
    # So does any version, if unchanged columns are present.
    row = update({"c": cell}, old[:-1] + ',"id":{"t":3,"h":true,"f":11,"v":1}}')
    assert old_values(row) == {"id": 1, "c": None}


def test_types_with_written_zero_values() -> None:
    for code, new in ((3, 1), (8, 1), (4, 1.5), (5, 1.5), (16, 1), (13, 2024)):
        row = update(
            {"c": {"t": code, "f": 65, "v": new}}, f'{{"c":{{"t":{code},"f":65,"v":null}}}}'
        )
        assert old_values(row) == {"id": 1, "c": None}


# Any update of a table, written as the new architecture writes it


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([(15, 64), (3, 65), (252, 64)]),
            st.none() | st.integers(0, 2),
            st.none() | st.integers(0, 2),
        ),
        max_size=6,
    )
)
def test_old_values_are_right_or_absent(rows: list[tuple[tuple[int, int], Any, Any]]) -> None:
    wire = {15: ["", "x", "y"], 3: [0, 1, 2], 252: ["", "eA==", "eQ=="]}
    plain = {15: ["", "x", "y"], 3: [0, 1, 2], 252: ["", "x", "y"]}
    new, old, truth = {}, [], {"id": 1}
    for index, ((code, flags), before, after) in enumerate(rows):
        name = f"c{index}"
        new[name] = {"t": code, "f": flags, "v": None if after is None else wire[code][after]}
        truth[name] = None if before is None else plain[code][before]
        if before == after:
            continue
        value = None if before is None or (code != 3 and before == 0) else wire[code][before]
        if after is None:
            value = wire[code][before]
        members = data_of({"t": code, "f": flags, "v": value}).decode()
        old.append(members[1:-1] if after is None else f'"{name}":{members}')
    row = update(new, "{" + ",".join(old) + "}")
    assert row.before is not None
    unknown = (row.extra or {}).get("before_unknown", [])
    assert row.before.complete == (not unknown)
    assert row.before.values.keys() | set(unknown) == truth.keys()
    assert row.before.values == {name: truth[name] for name in row.before.values}
