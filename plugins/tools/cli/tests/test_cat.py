"""``cdcfmt cat``: events and changes as JSON Lines, CSV and tables."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
from click.testing import Result
from support.canal_messages import row_message
from support.cli_tools import run, run_lines, write_messages
from support.golden_data import load_variant, native_messages

from cdcfmt_cli.json_text import plain_value, to_json
from cdcfmt_core.events import Message
from cdcfmt_core.types import GeometryValue, InvalidValue, Json

TABLE = "golden.upd_cols"
EXACT = ("--numbers", "exact")


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = (golden.message for golden in load_variant("canal-json", "tidb-extension").messages)
    return write_messages(tmp_path_factory.mktemp("canal") / "canal.jsonl", messages)


def test_every_event_is_a_line(canal: Path) -> None:
    events = run_lines("cat", canal, *EXACT)
    variant = load_variant("canal-json", "tidb-extension")
    kinds = [event["kind"] for event in events]
    assert kinds == [t["kind"] for message in variant.messages for t in message.truth]
    rows = [t for message in variant.messages for t in message.truth if t["kind"] == "row"]
    found = [event for event in events if event["kind"] == "row"]
    assert [(e["op"], e["database"], e["table"], e["commit_ts"]) for e in found] == [
        (t["op"], t["schema"], t["table"], t["commit_ts"]) for t in rows
    ]


def test_values_are_exact(canal: Path) -> None:
    (first, *_) = (e for e in run("cat", canal, *EXACT).stdout.splitlines() if '"op":"insert"' in e)
    # As text: a JSON parser would round what the source holds.
    assert '"c_bigint_u":18446744073709551615,' in first
    assert '"c_dec_big":12345678901234567890123456789012345.123456789012345678901234567890' in first
    assert '"c_json":{"f": 1.5, "key1": "value1"' in first
    assert '"c_time6":"12:27:23.123456"' in first
    assert '"c_binary":"AAEC//6AwyifkgAAAAAAAA=="' in first


def test_absent_is_not_null(tmp_path: Path) -> None:
    messages = (golden.message for golden in load_variant("canal-json", "handle-key-only").messages)
    path = write_messages(tmp_path / "m.jsonl", messages)
    rows = [e for e in run_lines("cat", path, "--kind", "row") if "after" in e]
    assert any(None in e["after"].values() for e in rows)
    assert {len(e["after"]) for e in rows if e["table"] == "large_t"} == {2, 11}


def test_filters(canal: Path) -> None:
    deletes = run_lines("cat", canal, "--op", "delete", "--include-tables", "golden.*")
    assert {(e["kind"], e["op"], e["database"]) for e in deletes} == {("row", "delete", "golden")}
    assert {e["kind"] for e in run_lines("cat", canal, "--kind", "ddl,watermark")} == {
        "ddl",
        "watermark",
    }
    all_ts = [e["commit_ts"] for e in run_lines("cat", canal)]
    middle = sorted(all_ts)[len(all_ts) // 2]
    later = run_lines("cat", canal, "-o", f"startingCommitTs={middle}")
    assert [e["commit_ts"] for e in later] == [ts for ts in all_ts if ts >= middle]


def test_changes_of_one_table(canal: Path) -> None:
    changes = run_lines("cat", canal, "--table", TABLE)
    kinds = [change["_change_type"] for change in changes]
    assert kinds.count("update_preimage") == kinds.count("update_postimage") > 0
    assert all(change["_commit_version"] == change["_sequence"]["commit"] for change in changes)
    after = run_lines("cat", canal, "--table", TABLE, "--images", "after")
    assert "update_preimage" not in [change["_change_type"] for change in after]


def canal_lines(*rows: tuple[str, dict[str, object]]) -> bytes:
    """Rows of Canal, each with columns of its own, and statements."""
    lines = []
    for kind, row in rows:
        wire = {"id": 1, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": "sql" in row,
                "type": kind, "es": 1, "ts": 1, "sql": row.get("sql", ""),
                "sqlType": None, "mysqlType": dict.fromkeys(row, "int"), "old": None,
                "data": None if "sql" in row else [row]}  # fmt: skip
        lines.append(json.dumps(wire).encode() + b"\n")
    return b"".join(lines)


def test_columns_missing_from_a_row(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_bytes(canal_lines(("INSERT", {"id": "1"}), ("INSERT", {"id": "2", "b": "3"})))
    assert [row["_absent"] for row in run_lines("cat", dump, "--table", "d.t")] == [["b"], []]
    head, first, _ = run("cat", dump, "--table", "d.t", "-f", "csv").stdout.splitlines()
    assert head.startswith("id,b,_change_type")
    assert first.startswith("1,,insert")
    assert first.endswith(',"[""b""]",')
    # Input that can be read only once uses the messages before.
    found = run_lines("cat", "-", "--table", "d.t", stdin=dump.read_bytes())
    assert [row["_absent"] for row in found] == [[], []]


def test_names_match_without_case(tmp_path: Path) -> None:
    """Like Spark's reader, the first of two spellings counts."""
    rows = [{"id": "1", "name": "7"}, {"ID": "2", "Name": "8"}]
    messages = [
        Message(None, json.dumps(row_message("INSERT", row)).encode(), offset=offset)
        for offset, row in enumerate(rows)
    ]
    path = write_messages(tmp_path / "m.jsonl", messages)
    changes = run_lines("cat", path, "--table", "shop.orders", "--key-columns", "Id")
    found = [(each["id"], each["name"], each["_absent"]) for each in changes]
    assert found == [(1, "7", []), (2, 8, [])]
    events = run_lines("cat", path, "--key-columns", "Id")
    assert [event["key_columns"] for event in events] == [["id"], ["ID"]]
    both = json.dumps(row_message("INSERT", {"id": "1", "ID": "2"})).encode()
    path = write_messages(tmp_path / "both.jsonl", [Message(None, both, offset=0)])
    (change,) = run_lines("cat", path, "--table", "shop.orders")
    assert (change["id"], change["ID"]) == (1, 2)
    result = run("cat", path, "--key-columns", "Id")
    assert result.exit_code == 2
    assert "option --key-columns: 'Id' is ambiguous: id or ID" in result.stderr


def test_truncates_are_counted(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_bytes(
        canal_lines(("INSERT", {"id": "1"}), ("TRUNCATE", {"sql": "truncate table t"}))
    )
    for output in ("json", "csv", "table"):
        result = run("cat", dump, "--table", "d.t", "-f", output)
        assert result.exit_code == 0
        assert "1 TRUNCATE or DROP of the table" in result.stderr
        assert "TRUNCATE" not in run("cat", dump, "-f", output).stderr


def test_csv(canal: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("cat", canal, "-f", "csv").stdout)))
    lines = run_lines("cat", canal)
    assert [row["kind"] for row in rows] == [line["kind"] for line in lines]
    assert [json.loads(row["after"]) for row in rows if row["after"]] == [
        line["after"] for line in lines if "after" in line
    ]
    changes = list(
        csv.DictReader(io.StringIO(run("cat", canal, "-f", "csv", "--table", TABLE).stdout))
    )
    assert {row["_change_type"] for row in changes} >= {"insert", "update_postimage"}
    assert changes[0]["c"] == "AP8="


def test_csv_distinguishes_null_from_empty_text(canal: Path) -> None:
    text = run("cat", canal, "-f", "csv", "--table", "golden.all_types").stdout
    assert ',"",' in text
    assert ",," in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_fits_the_terminal(canal: Path, width: int) -> None:
    for options in ([], ["--table", TABLE], ["--kind", "ddl"]):
        text = run("cat", canal, "-f", "table", *options, width=width).stdout
        lines = text.splitlines()
        assert len(lines) > 10
        if width >= 80:
            assert max(map(len, lines)) <= width


def test_standard_input(canal: Path) -> None:
    assert run_lines("cat", "-", stdin=canal.read_bytes())[0]["_source"]["path"] == "<stdin>"


def test_a_corrupt_message_is_a_record(canal: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(canal.read_bytes() + b'{"isDdl": fals\n')
    result = run("cat", path)
    assert result.exit_code == 0
    record = json.loads(result.stdout.splitlines()[-1])
    assert record["kind"] == "corrupt"
    assert f"offset {canal.stat().st_size}" in record["_corrupt_record"]["reason"]
    assert "1 corrupt: cdcfmt validate" in result.stderr


def test_types_in_a_later_file(tmp_path: Path) -> None:
    messages = [
        attrs.evolve(message, offset=number)
        for number, message in enumerate(native_messages("debezium/noschema_default"))
    ]
    ddl = [m for m in messages if m.value and b'"ddl"' in m.value]
    rows = [m for m in messages if m.value and b'"op"' in m.value]
    write_messages(tmp_path / "a.jsonl", rows)
    write_messages(tmp_path / "b.jsonl", ddl)
    mode = ("-o", "timePrecisionMode=adaptive_time_microseconds")
    found = run_lines("cat", tmp_path, *mode, "--op", "insert", "--table", "shop.wide")
    assert found
    assert isinstance(found[0]["c_date"], str)


def test_usage_errors(canal: Path, tmp_path: Path) -> None:
    for arguments, exit_code, text in (
        (["cat", tmp_path / "nothing"], 3, "path does not exist"),
        (["cat", canal, "--protocol", "canal"], 0, ""),
        (["cat", canal, "--protocol", "simpel"], 2, "unknown format 'simpel'"),
        (["cat", canal, "-o", "includeTable=a.b"], 2, "did you mean --include-tables?"),
        (["cat", canal, "-o", "includeTables"], 2, "write it as -o name=value"),
        (["cat", canal, "--kind", "rows"], 2, "'rows' is not one of row, ddl"),
        (["cat", canal, "--starting-commit-ts", "x"], 2, "option --starting-commit-ts: 'x'"),
        (["cat", canal, "--table", "a.b.c.d"], 2, "'a.b.c.d' is not database.table"),
        (["cat", "-", canal], 2, "read alone"),
        (["cat"], 2, "Missing argument 'INPUT...'"),
    ):
        result = run(*arguments)
        assert (result.exit_code, text in result.stderr) == (exit_code, True), result.output


@pytest.mark.parametrize("command", [["cat", "-f", "table"], ["inspect"], ["stats"], ["schema"]])
def test_names_from_the_wire_are_not_markup(command: list[str], tmp_path: Path) -> None:
    wire = {
        "isDdl": False, "type": "INSERT", "database": "[red]d", "table": "t[/red]\x1b[2J", "es": 1,
        "ts": 1, "pkNames": ["[bold]id"], "mysqlType": {"[bold]id": "int"},
        "sqlType": {"[bold]id": 4}, "data": [{"[bold]id": "1"}],
    }  # fmt: skip
    path = write_messages(tmp_path / "[x].jsonl", [Message(None, json.dumps(wire).encode())])
    text = run(*command, tmp_path).stdout
    assert "[red]d" in text
    assert "[/red]" in text
    assert "[bold]id" in text or command == ["stats"]
    assert "\x1b" not in text
    assert path.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1.10,\n "b": null}', '{"a": 1.10,  "b": null}'),
        ('{"a": NaN}', '"{\\"a\\": NaN}"'),
        ('"\udcff"', '"\ufffd"'),
        ("{", '"{"'),
        ("[" * 100_000, None),
    ],
)
def test_json_columns(text: str, expected: str | None) -> None:
    written = to_json({"c": plain_value(text, Json())})
    assert "\n" not in written
    written.encode()
    json.loads(written, parse_constant=pytest.fail)
    assert expected is None or written == f'{{"c":{expected}}}'


VALUES: list[tuple[object, str]] = [
    (Decimal("0E-10"), "0.0000000000"),
    (Decimal("1E+3"), "1E+3"),
    (Decimal("NaN"), '"NaN"'),
    (float("inf"), '"inf"'),
    (10**5000, "1" + "0" * 5000),
    (InvalidValue("0000-00-00"), '"0000-00-00"'),
    (timedelta(hours=-838, minutes=-59), '"-838:59:00"'),
    (datetime(2024, 1, 2, 3, 4, 5, 600_000), '"2024-01-02 03:04:05.600"'),
    (datetime(2024, 1, 2, tzinfo=UTC), '"2024-01-02T00:00:00Z"'),
    (b"\xff", '"/w=="'),
    (GeometryValue(4326, b"\1", None), '{"srid":4326,"wkb":"AQ==","wkt":null}'),
    ([1, 'a\u2028"\0'], '[1,"a\u2028\\"\\u0000"]'),
    (True, "true"),
]


def test_values_as_json() -> None:
    for value, expected in VALUES:
        assert to_json(value) == expected
        assert len(expected) > 4300 or json.loads(expected) is not None


def test_quiet(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    number = 0

    def result(command: tuple[str, ...]) -> Result:
        # A table is warned of once in a process.
        nonlocal number
        number += 1
        wire = {"isDdl": False, "type": "INSERT", "database": f"quiet{number}", "es": 1, "ts": 1,
                "pkNames": [], "mysqlType": {"a": "timestamp"}, "sqlType": {},
                "data": [{"a": "2024-01-02 03:04:05"}]}  # fmt: skip
        tables = [json.dumps(wire | {"table": f"t{n}"}).encode() for n in range(3)]
        path.write_bytes(b"\n".join([*tables, b'{"isDdl": fals']))
        return run(*command, path)

    for command in (("cat",), ("cat", "-f", "table"), ("sniff",), ("stats",), ("validate",)):
        loud, quiet = result(command), result((*command, "--quiet"))
        # One line for all of them.
        assert loud.stderr.count("--source-time-zone") == 1
        assert "(and 2 more like it)" in loud.stderr
        assert quiet.stderr == ""
        assert "next: " not in quiet.stdout
        assert quiet.exit_code == loud.exit_code
    error = result(("cat", "-q", "--table", "quiet.t9")).stderr
    assert error.startswith("error: no table quiet.t9 in the input; did you mean quiet")


@pytest.mark.parametrize("rows", [[{"id": "1"}] * 300, [1] * 300])
def test_repeated_text_is_printed_once(tmp_path: Path, rows: list[object]) -> None:
    value = json.dumps(
        {"data": rows, "type": "INSERT", "database": "d", "table": "t", "isDdl": False, "es": 1}
    ).encode()
    path = tmp_path / "messages.jsonl"
    for topic in ("t", "n" * 100_000):
        write_messages(path, [Message(None, value, topic=topic)])
        found = run_lines("cat", path)
        assert len(json.dumps(found)) < 20 * (len(value) + len(topic)) + 300 * 4096
        bad = [each["_corrupt_record"] for each in found if each["kind"] == "corrupt"]
        assert len([each for each in bad if each.get("value")]) == bool(bad)
        assert len(found) == (300 if topic == "t" else 1)
