"""``cdcfmt convert``: written and read events are equal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.cli_tools import run, run_lines, write_messages
from support.golden_data import load_variant, native_messages

from cdcfmt_core.events import Message


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = [g.message for g in load_variant("canal-json", "tidb-extension").messages]
    path = tmp_path_factory.mktemp("convert") / "canal.jsonl"
    return write_messages(path, messages)


TABLES = "golden.txn_a,golden.pk_change,golden.composite_pk,golden.multi_uk,golden.no_key"
"""Tables whose types are complete in canal-json: an ENUM is only a number."""


def outline(path: Path) -> list[Any]:
    """The events without times and without fields of a single format."""
    return [
        (
            event["kind"],
            event.get("op"),
            event["commit_ts"],
            event.get("table"),
            event.get("ddl"),
            event.get("before"),
            event.get("after"),
        )
        for event in run_lines("cat", path, "--include-tables", TABLES, "--kind", "row,ddl")
    ]


def test_corrupt_messages_are_counted_under_kind(canal: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(canal.read_bytes() + b'{"database": 1}\n{"data": [\n')
    to = "--to", "open-protocol", "--include-tables", TABLES, "--kind"
    good, left = run("convert", canal, *to, "row"), run("convert", damaged, *to, "row")
    assert (left.exit_code, left.stdout) == (0, good.stdout)
    counted = f"2 corrupt: cdcfmt validate {damaged} lists them with position and reason\n"
    assert "corrupt" not in good.stderr
    assert counted in left.stderr
    assert counted in run("cat", damaged, "--kind", "row").stderr
    assert "_corrupt_record" not in run("cat", damaged, "--kind", "row").stdout
    assert run("convert", damaged, *to, "row,corrupt").exit_code == 1
    checked = run("validate", damaged, "--kind", "row")
    assert (checked.exit_code, checked.stdout.rsplit("\n\n", 1)[1][:9]) == (1, "2 corrupt")


def test_one_table(canal: Path) -> None:
    to = "convert", canal, "--to", "open-protocol"
    one = run(*to, "--table", "golden.txn_a")
    assert (one.exit_code, bool(one.stdout)) == (0, True)
    assert one.stdout == run(*to, "--include-tables", "golden.txn_a").stdout
    other = run(*to, "--table", "golden.txn_c")
    assert (other.exit_code, "no table golden.txn_c in the input" in other.stderr) == (1, True)


@pytest.mark.parametrize("target", ["open-protocol", "debezium", "canal-json"])
def test_round_trip(target: str, canal: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there.jsonl", tmp_path / "back.jsonl"
    extension = [] if target == "open-protocol" else ["-w", "enableTidbExtension=true"]
    result = run(
        "convert", canal, "--from", "canal-json", "--to", target, "--output", there, *extension,
        "--include-tables", TABLES,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert f"messages, {there}" in result.stderr
    assert list(json.loads(run("sniff", there, "--json").stdout)) == [target]
    result = run(
        "convert", there, "--to", "canal-json", "-w", "enable-tidb-extension=true",
        "--lines", "value",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    back.write_bytes(result.stdout_bytes)
    assert json.loads(result.stdout_bytes.partition(b"\n")[0]).keys() >= {"isDdl", "_tidb"}
    expected = outline(canal)
    assert len(expected) > 90
    assert outline(back) == expected


def test_from_is_protocol(canal: Path) -> None:
    options = ("--to", "canal-json", "-w", "enableTidbExtension=true", "--include-tables", TABLES)
    expected = run("convert", canal, "--protocol", "canal-json", *options).stdout
    for given in (
        ("--from", "canal-json"),
        ("--from", "canal-json", "--protocol", "Canal-JSON"),
        ("--from", "canal-json", "-o", "dialect=auto"),
    ):
        assert run("convert", canal, *given, *options).stdout == expected
    both = run("convert", canal, *options, "--from", "canal-json", "--protocol", "debezium")
    assert both.exit_code == 2
    assert both.stderr == "error: --from canal-json and --protocol debezium: give one of them\n"
    other = run("convert", canal, *options, "--from", "debezium", "-o", "dialect=canal")
    assert other.exit_code == 2
    assert "cdcfmt has no option 'dialect'; dialect is an option of canal-json" in other.stderr


def test_watermarks_of_several_partitions(canal: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in canal.read_text().splitlines()]
    two = tmp_path / "two.jsonl"
    two.write_text(
        "".join(json.dumps(line | {"partition": n}) + "\n" for line in lines for n in (0, 1))
    )
    options = ("--to", "canal-json", "-w", "enableTidbExtension=true", "--include-tables", TABLES)
    result = run("convert", two, *options)
    assert result.exit_code == 1
    assert "partition 1" in result.stderr
    assert "watermarks of several partitions" in result.stderr
    rows = run_lines("convert", two, *options, "--kind", "row,ddl")
    assert len(rows) > len(run_lines("convert", canal, *options, "--kind", "row"))


def test_partitions(canal: Path) -> None:
    lines = run_lines("convert", canal, "--to", "canal-json", "--partitions", 3, "--kind", "row")
    assert {line["partition"] for line in lines} == {0, 1, 2}


def test_unwritable_events(canal: Path, tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", native_messages("canal/canal_flat"))
    unstamped = ["--to", "debezium", "-w", "synthesizeCommitTs=false"]
    result = run("convert", path, *unstamped)
    assert result.exit_code == 1
    assert "message 1, topic canal_flat, partition 0, offset 0: " in result.stderr
    assert "synthesizeCommitTs=true" in result.stderr
    for arguments, text in (
        (["--to", "canal-json", "-w", "partitoner=table"], "did you mean partitioner?"),
        (["--to", "canal-json", "-w", "partitioner=table"], "(convert: --partitions)"),
        (["--to", "canal-json", "-w", "x"], "write it as -w name=value"),
        ([], "Missing option '--to'"),
    ):
        failed = run("convert", canal, *arguments)
        assert (failed.exit_code, text in failed.stderr) == (2, True), failed.stderr


def test_canal_becomes_debezium_at_the_first_try(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", native_messages("canal/canal_flat"))
    result = run("convert", path, "--to", "debezium", "--output", tmp_path / "new.jsonl")
    assert result.exit_code == 0
    assert "commit_ts made from source time: 485" in result.stderr
    before, after = (run_lines("cat", file) for file in (path, tmp_path / "new.jsonl"))
    for old, new in zip(before, after, strict=True):
        if old["kind"] == "row":
            assert (old["op"], old["table"], old["source_time"]) == (
                new["op"], new["table"], new["source_time"]
            )  # fmt: skip


def split_by(
    mark: bytes, messages: Iterable[Message]
) -> tuple[list[Message], list[Message], list[Message]]:
    """The rows of one table, all messages of others, and that table's statements."""
    valued = [(m, m.value) for m in messages if m.value]
    mine = [m for m, value in valued if mark in value and b'"isDdl":false' in value]
    statements = [m for m, value in valued if mark in value and b'"isDdl":true' in value]
    return mine, [m for m, value in valued if mark not in value], statements


def numbered(messages: list[Message]) -> list[Message]:
    return [attrs.evolve(m, offset=number) for number, m in enumerate(messages)]


@pytest.mark.parametrize("target", ["simple", "open-protocol"])
def test_nothing_is_written_before_a_column_that_cannot_be(target: str, tmp_path: Path) -> None:
    wide, others, _ = split_by(b'"table":"wide"', native_messages("canal/canal_flat"))
    path = write_messages(tmp_path / "m.jsonl", numbered([*others * 2, *wide[:3]]))
    result = run("convert", path, "--to", target, "--kind", "row")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"error: {target} table shop.wide, column c_geom: " in result.stderr
    assert "has no geometry; unsupportedValues=skip leaves it out" in result.stderr
    assert result.stderr.endswith(". Also: shop.wide.c_point\n")


VECTORS = b'"table":"vec_t"'


def vectors_among_others() -> tuple[list[Message], list[Message], list[Message]]:
    golden = load_variant("canal-json", "tidb-extension").messages
    vectors, others, statements = split_by(VECTORS, (g.message for g in golden))
    rows = [m for m in others if b'"table":"txn_a"' in (m.value or b"")]
    return vectors, [m for m in rows if b'"isDdl":false' in (m.value or b"")], statements


def test_a_statement_shows_columns_between_the_samples(tmp_path: Path) -> None:
    vectors, others, statements = vectors_among_others()
    assert (len(vectors), len(statements)) == (4, 1)
    messages = [*others * 6, *statements, *vectors, *others * 6]
    path = write_messages(tmp_path / "m.jsonl", numbered(messages))
    result = run("convert", path, "--to", "dts-avro", "--kind", "row")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "dts-avro table golden.vec_t, column v: DTS has no vector" in result.stderr
    assert result.stderr.endswith(". Also: golden.vec_t.vv\n")


def test_tables_without_rows_are_no_obstacle(tmp_path: Path) -> None:
    vectors, others, statements = vectors_among_others()
    path = write_messages(tmp_path / "m.jsonl", numbered([*others, *statements]))
    result = run("convert", path, "--to", "dts-avro", "--kind", "row")
    assert (result.exit_code, result.stdout.count("\n")) == (0, len(others)), result.stderr
    # Neither are tables that are left out.
    path = write_messages(tmp_path / "n.jsonl", numbered([*others, *statements, *vectors]))
    given = "--to", "dts-avro", "--kind", "row", "--exclude-tables", "golden.vec_t"
    assert run("convert", path, *given).exit_code == 0


def test_the_check_before_counts_nothing(canal: Path, tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", native_messages("canal/canal_flat"))
    skips = "-w", "unsupportedValues=skip", "-w", "unsupportedEvents=skip"
    texts = []
    for given in ([path], ["-"]):
        result = run(
            "convert", *given, "--to", "simple", *skips, "--protocol", "canal-json",
            "--no-scan-schemas", stdin=path.read_bytes(),
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        texts.append((result.stdout, result.stderr))
    # Standard input is read once, without a check.
    assert "shop.wide.c_geom: 324" in texts[0][1]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("target", ["simple", "open-protocol"])
def test_rows_with_unsupported_values_are_skipped(target: str, tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", native_messages("canal/canal_flat"))
    command = "convert", path, "--to", target, "--kind", "row"
    result = run(*command)
    assert result.exit_code == 1
    assert "shop.wide, column c_" in result.stderr
    assert "has no geometry; unsupportedValues=skip leaves it out" in result.stderr
    # Other options do not skip them.
    assert run(*command, "-w", "unsupportedEvents=skip").exit_code == 1
    good = run(*command, "-w", "unsupportedValues=skip", "--output", tmp_path / "new.jsonl")
    assert good.exit_code == 0
    assert "skipped: events, for shop.wide.c_geom: 324" in good.stderr
    rows = [e for e in run_lines("cat", tmp_path / "new.jsonl") if e["kind"] == "row"]
    whole = [e for e in run_lines("cat", path, "--kind", "row") if e["table"] != "wide"]
    assert [(e["op"], e["table"]) for e in rows] == [(e["op"], e["table"]) for e in whole]


def test_required_keys_are_kept(canal: Path) -> None:
    result = run("convert", canal, "--to", "open-protocol", "--lines", "value")
    assert result.exit_code == 2
    assert "--lines value omits keys, but reading open-protocol" in result.stderr
