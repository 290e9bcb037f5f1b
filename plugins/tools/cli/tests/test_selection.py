"""``cat`` with --where, --key, --columns, --since, --until and --tail, over real messages."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.cli_tools import run, write_messages
from support.golden_data import native_messages
from support.kafka_orders import order

from cdcfmt_cli.conditions import Condition
from cdcfmt_core.errors import OptionError
from cdcfmt_core.types import InvalidValue

RECORD = {
    "id": 42, "name": "abc", "price": Decimal("1.50"), "big": 9007199254740993, "none": None,
    "at": "2026-11-20 22:38:51", "instant": "2026-11-20T22:38:51Z", "code": "20261120",
    "_source": {"offset": 5}, "data": b"xy", "ratio": 0.1, "ok": True,
    "zero": InvalidValue("0000-00-00"), "two words": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dump") / "canal.jsonl"
    return str(write_messages(path, native_messages("canal/canal_flat")))


def rows(*arguments: str) -> list[dict[str, Any]]:
    result = run("cat", "-q", *arguments)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.split("\n") if line]


@pytest.mark.parametrize(
    "text",
    [
        "id = 42", "ID == '42'", "id <> 41", "id IN (1, 42)", "id NOT IN (1, 2)",
        "id BETWEEN 42 AND 43", "id > -42", "price = 1.5", "price >= '1.50'",
        "big = 9007199254740993", "ratio = 0.1", "ok", "ok = true", "NOT id = 1",
        "name LIKE 'a%'", "name LIKE '_b_'", "name NOT LIKE 'A%'", "name ILIKE 'A%'",
        "id RLIKE 4", "zero = '0000-00-00'",
        "name RLIKE '^a.c$'", "name = \"abc\"", "none IS NULL", "id IS NOT NULL", "none <=> NULL",
        "at = '2026-11-20T22:38:51'", "instant >= '2026-11-20 22:38'", "at > DATE '2026-11-20'",
        "instant < TIMESTAMP '2026-11-20T22:38:51+00:01' OR id = 42", "_source.offset = 5",
        "data = 'xy'", "`two words` = 3", "id = 1 OR (name = 'abc' AND price < 2)",
        "code < '20261121'",
    ],
)  # fmt: skip
def test_a_condition_that_holds(text: str) -> None:
    assert Condition(text).holds(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "id = 41", "name LIKE 'A%'", "big = 9007199254740992", "price = 1.51", "none = 1",
        "NOT none = 1", "none <> 1", "id IN (1, NULL)", "id NOT IN (1, NULL)", "id = 'x'",
        "name LIKE 'a\\\\%'", "missing = 1", "name.part = 1", "code = '2026-11-20'", "id",
    ],
)  # fmt: skip
def test_a_condition_that_does_not_hold(text: str) -> None:
    assert not Condition(text).holds(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "", "id =", "id + 1 = 2", "upper(name) = 'A'", "SELECT 1", "id = 1; DROP TABLE t",
        "id IN (SELECT 1)", "EXISTS (SELECT 1)", "-name = 1", "id =" + "(" * 400 + "1" + ")" * 400,
        " AND ".join(["id = 1"] * 500),
    ],
    ids=range(11),
)  # fmt: skip
def test_other_text_is_an_error(text: str) -> None:
    with pytest.raises(OptionError, match="--where: "):
        Condition(text)


def test_a_bad_pattern_is_an_error() -> None:
    with pytest.raises(OptionError, match=r"'\(' is not a regular expression"):
        Condition("name RLIKE '('").holds(RECORD)


def test_the_history_of_a_row(dump: str) -> None:
    table = ("--table", "shop.pair", dump)
    by_condition = rows("--where", "a = 51 AND b = 'new'", *table)
    assert [row["_change_type"] for row in by_condition] == [
        "insert", "update_preimage", "update_postimage"
    ]  # fmt: skip
    assert by_condition == rows("--key", "51,new", *table)
    narrow = rows("--key", "51,new", "--columns", "A,v", *table)
    assert [(row["a"], row["v"]) for row in narrow] == [(r["a"], r["v"]) for r in by_condition]
    assert {name for row in narrow for name in row if name[0] != "_"} == {"a", "v"}
    header, *lines = run(
        "cat", "-q", "--key", "51,new", "--columns", "v", "-f", "csv", *table
    ).stdout.splitlines()
    assert (header.split(",")[:2], len(lines)) == (["v", "_change_type"], 3)
    few = rows("--key", "51,new", "--columns", "_change_type,v", *table)
    assert few[0] == {"v": "dflt", "_change_type": "insert"}


def test_events_match_by_either_image(dump: str) -> None:
    events = rows("--where", "v = 'dflt' AND a = 51", dump)
    assert [event["op"] for event in events] == ["insert", "update"]
    assert {
        name for each in rows("--key", "51,new", "--columns", "n", dump) for name in each["after"]
    } == {"n"}


def test_times_of_the_source(dump: str) -> None:
    everything = rows(dump)
    times = [event["source_time"] for event in everything]
    middle = "2026-11-20T22:38:51Z"
    since, until = rows("--since", middle, dump), rows("--until", middle, dump)
    assert [event["source_time"] for event in since] == [t for t in times if t >= middle]
    assert [event["source_time"] for event in until] == [t for t in times if t < middle]
    assert rows("--since", "2026-11-20 22:38:51", dump) == since
    assert rows("--since", "2026-11-21T06:38:51+08:00", dump) == since
    assert rows("--tail", "3", dump) == everything[-3:]
    result = run("cat", "--since", "yesterday", dump)
    assert result.exit_code == 2
    assert "option since: 'yesterday' is not a time such as 2024-01-31T10:00:00Z" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--where", "idd = 1"), "no record has a column idd; did you mean id?"),
        (("--columns", "pric"), "--columns: no row has pric"),
        (("--where", "id = xyzzy"), "no record has a column xyzzy; text is in quotes: 'xyzzy'"),
        (("--key", "1,2,3,4,5"), "as many columns as values (5); that of shop."),
        (("--key", "1,2,3,4,5"), "; --key-columns names other columns"),
    ],
)
def test_a_name_without_a_column_is_an_error(
    dump: str, arguments: tuple[str, ...], error: str
) -> None:
    result = run("cat", "-q", *arguments, dump)
    assert result.exit_code == 1
    assert error in result.stderr


def test_a_known_column_that_is_always_null_is_no_error(dump: str) -> None:
    assert rows("--where", "commit_ts > 0", dump) == []


def test_a_time_without_rows_is_no_error_of_the_key(dump: str) -> None:
    assert rows("--key", "51,new", "--since", "2030-01-01", dump) == []


def test_tail_needs_an_end(dump: str) -> None:
    result = run("cat", "--tail", "1", "-n", "2", dump)
    assert (result.exit_code, "--tail is for inputs that end" in result.stderr) == (2, True)


def test_corrupt_messages_are_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"not a message\n")
    result = run("cat", "--since", "2020-01-01", str(path))
    assert (result.stdout, result.exit_code) == ("", 1)
    assert "1 corrupt: cdcfmt validate" in result.stderr
    assert "error: the only row of this selection is bad: " in result.stderr


def test_the_end_of_nothing_has_a_header(dump: str) -> None:
    command = "cat", dump, "--table", "shop.pair", "--where", "a = 77", "--columns", "a,b"
    for more in ((), ("--tail", 3)):
        result = run(*command, "-f", "csv", *more)
        assert result.stdout.startswith("a,b,_change_type,"), result.stderr
        assert result.stdout.count("\n") == 1


def test_where_all_rows_are_bad(dump: str, tmp_path: Path) -> None:
    lines = Path(dump).read_bytes().splitlines(keepends=True)
    messages = [json.loads(base64.b64decode(json.loads(line)["value"])) for line in lines]
    ddl = next(n for n, message in enumerate(messages) if message["isDdl"])
    path = tmp_path / "bad.jsonl"
    path.write_bytes(lines[ddl])
    alone = run("cat", path, "--where", "id = 42")
    assert (alone.exit_code, "no record has a column id" in alone.stderr) == (1, True)
    path.write_bytes(lines[ddl] + b'{"data": [\n')
    with_bad = run("cat", path, "--where", "id = 42")
    assert (with_bad.exit_code, with_bad.stdout) == (1, "")
    assert "1 corrupt: cdcfmt validate" in with_bad.stderr
    assert "the only row of this selection is bad: " in with_bad.stderr
    # Not if something else is wanted, and found.
    assert run("cat", path, "--where", "kind = 'ddl'").exit_code == 0


def test_reasons_of_bad_rows_are_shown(tmp_path: Path) -> None:
    value = json.loads(order(1).value or b"")
    bad = [{**value, "data": [{"id": f"x{n}", "name": "a"}]} for n in range(3)]
    every, some = tmp_path / "every.jsonl", tmp_path / "some.jsonl"
    every.write_text("".join(json.dumps(each) + "\n" for each in bad))
    some.write_text(json.dumps(value) + "\n" + every.read_text())
    for path, exit_code in ((every, 1), (some, 0)):
        for columns in ("name", "name,_change_type"):
            command = "cat", path, "--table", "shop.orders", "--columns", columns
            for more in ((), ("--tail", 9), ("-f", "table")):
                result = run(*command, *more)
                assert (result.exit_code, result.stdout.count("not an integer")) == (exit_code, 3)
            # A file of cells has no place for them, unless the column is wanted.
            csv = run(*command, "-f", "csv")
            assert (csv.exit_code, ",,\n" in csv.stdout) == (exit_code, False), csv.stdout
        for selects in (("--key", "1"), ("--where", "id = 1"), ("--since", "2001-01-01")):
            result = run("cat", path, *selects)
            assert result.exit_code == exit_code
            assert "3 corrupt: cdcfmt validate" in result.stderr
            assert ("error: all 3 rows of this selection are bad: " in result.stderr) == exit_code
            assert ("not an integer; got 'x0'" in result.stderr) == exit_code
