"""``cdcfmt validate`` counts decoded values that Spark changes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from support.cli_tools import run, run_lines, write_messages
from support.golden_data import load_variant, native_messages

from cdcfmt_cli.changed import IMPOSSIBLE, NO_TEXT, NO_VARIANT
from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder
from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.registry import default_registry
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.values import plain_value

OF_THE_BRIDGE = {
    "invalid value as NULL": IMPOSSIBLE,
    "undecodable text": NO_TEXT,
    "JSON kept as text": NO_VARIANT,
}

WIRES: dict[str, list[Message]] = {
    "canal-json": [g.message for g in load_variant("canal-json", "default").messages],
    "open-protocol": [g.message for g in load_variant("open", "batched").messages],
    "debezium": [g.message for g in load_variant("debezium", "default").messages],
    "simple": [g.message for g in load_variant("simple-avro", "default").messages],
    "dts-avro": list(native_messages("dts/dts")),
}


def changed_by_the_bridge(protocol: str, messages: list[Message]) -> Counter[tuple[str, str]]:
    policy = ValuePolicy()
    options = validate({"protocol": protocol}, DECODING_OPTIONS, owner="test")
    codec = default_registry().get_codec(protocol)
    decoder = MessageDecoder(options, validate({}, codec.options, owner="test"), EventFilter())
    for message in messages:
        for event in decoder.decode(message):
            if isinstance(event, RowChange):
                types = {column.name: column.type for column in event.table.columns}
                names = (event.table.database, event.table.schema, event.table.table)
                table = ".".join(filter(None, names))
                for image in filter(None, (event.before, event.after)):
                    for name, value in image.values.items():
                        plain_value(value, types[name], f"{table}.{name}", policy)
    found: Counter[tuple[str, str]] = Counter()
    for text, count in policy.counts.items():
        column, _, what = text.rpartition(": ")
        found[OF_THE_BRIDGE[what], column] = count
    return found


@pytest.mark.parametrize("protocol", WIRES)
def test_the_counts_are_the_bridges(protocol: str, tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", WIRES[protocol])
    lines = [line for line in run_lines("validate", path, "--json") if line["found"] == "changed"]
    counts = {(line["what"], f"{line['table']}.{line['column']}"): line["count"] for line in lines}
    assert counts == changed_by_the_bridge(protocol, WIRES[protocol])
    assert len(counts) >= 4
    for line in lines:
        assert 1 <= len(line["first"]) <= min(line["count"], 3)
        assert line["sample"]
    text = run("validate", path).stdout
    assert f"none corrupt, {sum(counts.values())} changed: " in text
    assert "impossible value in Spark: NULL; invalidValues=text" in text
    assert "all good" not in text


def test_missing_types_and_duplicate_names(tmp_path: Path) -> None:
    wire = {"isDdl": False, "type": "INSERT", "database": "d", "table": "t", "es": 1, "ts": 1,
            "pkNames": ["id"], "mysqlType": {"id": "int"}, "sqlType": {"id": 4},
            "data": [{"id": "1", "b": "x"}]}  # fmt: skip
    good = json.dumps(wire).encode()
    twice = good.replace(b'"b": "x"', b'"id": "2"')
    path = write_messages(
        tmp_path / "m.jsonl",
        [Message(None, value, (), "t", 1, 7 + n) for n, value in enumerate((good, twice, twice))],
    )
    untyped, named_twice = sorted(run_lines("validate", path, "--json"), key=lambda c: c["count"])
    assert (untyped["what"], untyped["table"], untyped["column"], untyped["count"]) == (
        "no type on the wire", "d.t", "b", 1,
    )  # fmt: skip
    assert (named_twice["column"], named_twice["count"]) == ("id", 2)
    assert [place["offset"] for place in named_twice["first"]] == [8, 9]
    assert "t[1] @ 8" in run("validate", path).stdout


def test_frames_of_a_batch_are_checked(tmp_path: Path) -> None:
    def frame(data: bytes) -> bytes:
        return len(data).to_bytes(8, "big") + data

    key = (1).to_bytes(8, "big") + frame(b'{"ts":1,"scm":"d","tbl":"t","t":1}')
    value = frame(b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"id":{"t":3,"f":11,"v":2}}}')
    path = write_messages(tmp_path / "m.jsonl", [Message(key, value)])
    (line,) = run_lines("validate", path, "--json")
    assert (line["what"], line["column"]) == ("name that occurs twice in a JSON object", "id")


def test_strict_sets_exit_code_for_changed_values(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", WIRES["dts-avro"])
    assert run("validate", path).exit_code == 0
    assert run("validate", path, "--strict").exit_code == 1
    good = write_messages(tmp_path / "good.jsonl", native_messages("canal/canal_flat"))
    assert run("validate", good, "--strict").exit_code == 0
