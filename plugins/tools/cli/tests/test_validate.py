"""``cdcfmt validate`` lists position and reason of damage of every kind, in every format."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import lz4.frame
import pytest
from cloudcanal_messages import DML
from support.bad_input import changed
from support.cli_tools import run, write_messages
from support.golden_data import load_variant, native_messages

from cdcfmt_core.events import Message

Damage = Callable[[Message], Message]


def value(change: Callable[[bytes], bytes]) -> Damage:
    return lambda message: attrs.evolve(message, value=change(message.value or b""))


def key(change: Callable[[bytes], bytes]) -> Damage:
    return lambda message: attrs.evolve(message, key=change(message.key or b""))


def member(*path: Any, to: Any) -> Damage:
    """Another value at ``path`` of the JSON value; ``...`` drops it."""
    return value(lambda data: json.dumps(changed(json.loads(data), path, to)).encode())


def frame(*path: Any, to: Any, of: str = "value") -> Damage:
    """The same in the first frame of an Open Protocol message."""

    def change(data: bytes) -> bytes:
        skip = 8 if of == "key" else 0
        head, body = data[:skip], data[skip + 8 :]
        body = json.dumps(changed(json.loads(body), path, to)).encode()
        return head + struct.pack(">q", len(body)) + body

    return (key if of == "key" else value)(change)


def replaced(old: bytes, new: bytes) -> Damage:
    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return value(change)


CANAL: dict[str, tuple[Damage, str]] = {
    "cut in half": (value(lambda v: v[: len(v) // 2]), "truncated"),
    "last byte gone": (value(lambda v: v[:-1]), "truncated"),
    "something behind": (value(lambda v: v + b"}"), "not JSON"),
    "a semicolon": (replaced(b'"es":', b'"es";'), "not JSON"),
    "a raw line end in a name": (replaced(b'"es"', b'"e\ns"'), "not JSON"),
    "a list": (value(lambda v: b"[" + v + b"]"), "object"),
    "data is text": (member("data", to="x"), "data"),
    "data is an object": (member("data", to={}), "data"),
    "a row is a number": (member("data", 0, to=5), "data[0]"),
    "id is no number": (member("data", 0, "id", to="one"), "data[0].id"),
    "id is a list": (member("data", 0, "id", to=[1]), "data[0].id"),
    "id is too large": (member("data", 0, "id", to="99999999999999999999"), "id"),
    "es is text": (member("es", to="now"), "es"),
    "es is negative": (member("es", to=-1), "es"),
    "ts is beyond the calendar": (member("ts", to=10**18), "ts"),
    "isDdl is text": (member("isDdl", to="no"), "isDdl"),
    "type is unknown": (member("type", to="MERGE"), "type"),
    "type is gone": (member("type", to=...), "type"),
    "pkNames is text": (member("pkNames", to="id"), "pkNames"),
    "mysqlType is a list": (member("mysqlType", to=[]), "mysqlType"),
    "sqlType is text": (member("sqlType", to="x"), "sqlType"),
    "database is a number": (member("database", to=5), "database"),
    "table is a list": (member("table", to=[]), "table"),
    "old is text": (member("old", to="x"), "old"),
}

OPEN: dict[str, tuple[Damage, str]] = {
    "value cut off": (value(lambda v: v[:-1]), "a length of"),
    "value's length cut off": (value(lambda v: v[:5]), "truncated"),
    "value's length lies": (value(lambda v: b"\x7f" + v[1:]), "a length of"),
    "value's length is negative": (value(lambda v: b"\xff" * 8 + v[8:]), "a length of"),
    "key cut off": (key(lambda k: k[:-1]), "a length of"),
    "key has another version": (key(lambda k: struct.pack(">q", 2) + k[8:]), "version 2"),
    "key is gone": (lambda m: attrs.evolve(m, key=None), "key"),
    "key is empty": (key(lambda k: k[:8]), "event values"),
    "a value too many": (value(lambda v: v + v), "event values"),
    "key's ts is text": (frame("ts", to="x", of="key"), "key[0].ts"),
    "key's type is unknown": (frame("t", to=9, of="key"), "key[0]"),
    "key's table is a number": (frame("tbl", to=1, of="key"), "key[0].tbl"),
    "value is a list": (value(lambda v: struct.pack(">q", 2) + b"[]"), "value[0]"),
    "value is empty JSON text": (value(lambda v: struct.pack(">q", 2) + b'""'), "value[0]"),
    "columns are a number": (frame("u", to=5), "value[0].u"),
    "a column without type": (frame("u", "id", "t", to=...), "id"),
    "a column's type is text": (frame("u", "id", "t", to="x"), "id"),
    "compressed without a word": (
        value(lambda v: struct.pack(">q", len(c := lz4.frame.compress(v[8:]))) + c),
        "largeMessageHandleCompression",
    ),
}

DEBEZIUM: dict[str, tuple[Damage, str]] = {
    "cut in half": (value(lambda v: v[: len(v) // 2]), "truncated"),
    "op is unknown": (member("payload", "op", to="x"), "op"),
    "op is a number": (member("payload", "op", to=1), "op"),
    "after is text": (member("payload", "after", to="x"), "after"),
    "after and before are gone": (member("payload", "after", to=None), ""),
    "source is a list": (member("payload", "source", to=[]), "source"),
    "source.db is a number": (member("payload", "source", "db", to=1), "db"),
    "ts_ms is text": (member("payload", "ts_ms", to="x"), "ts_ms"),
    "fields are text": (member("schema", "fields", to="x"), "schema"),
    "id is text": (member("payload", "after", "id", to="x"), "id"),
}

DTS: dict[str, tuple[Damage, str]] = {
    "cut in half": (value(lambda v: v[: len(v) // 2]), "is truncated"),
    "last byte gone": (value(lambda v: v[:-1]), "is truncated"),
    "bytes behind": (value(lambda v: v + b"\x02\x02\x02"), "follow the record"),
    "empty": (value(lambda v: b""), "empty"),
    "a text is not UTF-8": (replaced(b"shop.wide", b"shop.wid\xff"), "is not UTF-8"),
    "a text's length lies": (replaced(b"\x12shop.wide", b"\xfe\xff\x03shop.wide"), "is truncated"),
}

CLOUDCANAL: dict[str, tuple[Damage, str]] = {
    "cut in half": (value(lambda v: v[: len(v) // 2]), "truncated"),
    "action is unknown": (member("action", to="MERGE"), "action"),
    "data is text": (member("data", to="x"), "data"),
    "execTs is text": (member("execTs", to="now"), "execTs"),
    "table is a number": (member("table", to=5), "table"),
    "pks are a number": (member("pks", to=5), "pks"),
}

SIMPLE: dict[str, tuple[Damage, str]] = {
    "cut in half": (value(lambda v: v[: len(v) // 2]), "truncated"),
    "type is a number": (member("type", to=5), "type"),
    "the table's schema is text": (member("tableSchema", to="x"), "tableSchema"),
    "columns are text": (member("tableSchema", "columns", to="x"), "columns"),
    "a column without name": (member("tableSchema", "columns", 0, "name", to=...), "name"),
    "a version is text": (member("tableSchema", "version", to="x"), "version"),
}

SIMPLE_AVRO: dict[str, tuple[Damage, str]] = {
    "cut in half": (value(lambda v: v[: len(v) // 2]), ""),
    "last byte gone": (value(lambda v: v[:-1]), ""),
    "bytes behind": (value(lambda v: v + b"\x02\x02"), ""),
}


def victims() -> dict[str, tuple[str, Message, dict[str, tuple[Damage, str]]]]:
    """A good message of each format, an insert into a table with key ``id``, and its damages."""

    def of_ticdc(protocol: str) -> Message:
        golden = next(
            g
            for g in load_variant(protocol, "default").messages
            if g.kind == "row" and g.truth[0]["op"] == "insert"
        )
        return golden.message

    def table_of_ticdc(protocol: str) -> Message:
        """Its rows need a preceding schema; a schema needs none."""
        messages = load_variant(protocol, "default").messages
        return next(golden.message for golden in messages if golden.kind == "bootstrap")

    cloudcanal = Message(None, json.dumps(DML | {"action": "INSERT", "before": []}).encode())
    dts = next(m for m in native_messages("dts/dts") if b"shop.wide" in (m.value or b""))
    return {
        "canal-json": ("canal-json", of_ticdc("canal-json"), CANAL),
        "open-protocol": ("open-protocol", of_ticdc("open"), OPEN),
        "debezium": ("debezium", of_ticdc("debezium"), DEBEZIUM),
        "dts-avro": ("dts-avro", dts, DTS),
        "cloudcanal-json": ("cloudcanal-json", cloudcanal, CLOUDCANAL),
        "simple-json": ("simple", table_of_ticdc("simple-json"), SIMPLE),
        "simple-avro": ("simple", table_of_ticdc("simple-avro"), SIMPLE_AVRO),
    }


def test_there_are_fifty_distinct_damages() -> None:
    damaged = [
        (protocol, damage(message).key, damage(message).value)
        for protocol, message, damages in victims().values()
        for damage, _ in damages.values()
    ]
    assert len(damaged) == len(set(damaged)) >= 50


CASES = [(name, what) for name, (_, _, damages) in victims().items() for what in damages]


@pytest.mark.parametrize("name", victims())
def test_position_and_reason_of_each(name: str, tmp_path: Path) -> None:
    protocol, good, damages = victims()[name]
    messages = interleaved(good, [damage for damage, _ in damages.values()])
    path = write_messages(tmp_path / "m.jsonl", messages)
    result = run("validate", path, "--protocol", protocol, "--json")
    assert result.exit_code == 1
    problems = [json.loads(line) for line in result.stdout.split("\n")[:-1]]
    problems = [problem for problem in problems if problem["found"] == "corrupt"]
    by_offset = {problem["offset"]: problem for problem in problems}
    for number, (what, (_, expected)) in enumerate(damages.items()):
        problem = by_offset.pop(1000 + number, None)
        assert problem is not None, f"{what} passed as good"
        assert (problem["topic"], problem["partition"]) == ("t", 3), what
        assert problem["message"] == 2 * number + 2, what
        assert problem["protocol"] == protocol, what
        text = f"{problem['field']}: {problem['reason']}"
        assert problem["reason"], what
        assert expected in text, (what, text)
        assert not problem["reason"].startswith("the decoder failed"), (what, text)
    # The good ones between them are untouched.
    assert not by_offset


def interleaved(good: Message, damages: Iterable[Damage]) -> list[Message]:
    """Good, damaged, good, damaged, …; the damaged ones from offset 1000 on."""
    found = []
    for number, damage in enumerate(damages):
        found.append(attrs.evolve(good, topic="t", partition=3, offset=number))
        found.append(attrs.evolve(damage(good), topic="t", partition=3, offset=1000 + number))
    return found


@pytest.mark.parametrize("name", victims())
def test_text_output_has_position_and_reason(name: str, tmp_path: Path) -> None:
    protocol, good, damages = victims()[name]
    messages = interleaved(good, [damage for damage, _ in damages.values()])
    path = write_messages(tmp_path / "m.jsonl", messages)
    result = run("validate", path, "--protocol", protocol, "-n", 100)
    assert result.exit_code == 1
    for number in range(len(damages)):
        assert f"t[3] @ {1000 + number}" in result.stdout
    assert f"{len(damages)} corrupt: {2 * len(damages)} messages" in result.stdout
    assert "next: cdcfmt inspect --nth 2 --raw" in result.stdout
    few = run("validate", path, "--protocol", protocol, "-n", 2).stdout
    listed, mark, _ = few.partition(f"{len(damages)} problems in all")
    assert "1001" in listed
    assert "1002" not in listed
    assert mark


def test_reasons_are_counted(tmp_path: Path) -> None:
    _, good, _ = victims()["canal-json"]
    kinds = {
        "table: a required field": (member("table", to=...), 40),
        "data[#].id: not an integer": (member("data", 0, "id", to="one"), 25),
        "es: ": (member("es", to="now"), 3),
    }
    damages = [damage for damage, count in kinds.values() for _ in range(count)]
    path = write_messages(tmp_path / "m.jsonl", interleaved(good, damages))
    text = run("validate", path).stdout
    assert "… 68 problems in all, by reason below" in text
    listed, _, by_reason = text.partition("problems in all")
    assert listed.count("t[3] @") == 20
    lines = [line.split() for line in by_reason.splitlines() if "t[3] @" in line]
    assert [(line[0], line[-1]) for line in lines] == [
        ("40", "1000"),
        ("25", "1040"),
        ("3", "1065"),
    ]
    for name in kinds:
        assert name in by_reason
    found = [json.loads(line) for line in run("validate", path, "--json").stdout.splitlines()]
    reasons = [line for line in found if line["found"] == "reason"]
    assert [(line["count"], line["first"]["offset"]) for line in reasons] == [
        (40, 1000), (25, 1040), (3, 1065)
    ]  # fmt: skip
    assert all(line["reason"].startswith(name) for line, name in zip(reasons, kinds, strict=True))
    assert reasons[1]["first"] == {"message": 82, "topic": "t", "path": str(path), "partition": 3,
                                   "offset": 1040}  # fmt: skip
    assert len(found) == 68 + 3
    few = run("validate", path, "--json", "-n", 5).stdout
    assert len(few.splitlines()) == 5 + 3
    only_reasons = run("validate", path, "-n", 0).stdout
    assert only_reasons.count("t[3] @") == 3
    # Everything was listed.
    assert "in all" not in run("validate", path, "-n", 68).stdout


def test_invalid_lines(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"value":"e30"}\n' + b"x" * 2000 + b"\n")
    result = run("validate", path, "--json", "--line-format", "message", "--max-message-bytes", 999)
    first, second, *_ = [json.loads(line) for line in result.stdout.split("\n")[:-1]]
    assert (first["path"], first["offset"], first["field"]) == (str(path), 0, "value")
    assert (second["offset"], "the line has 2000 bytes" in second["reason"]) == (16, True)


def test_good_messages(tmp_path: Path) -> None:
    messages = (golden.message for golden in load_variant("open", "batched").messages)
    result = run("validate", write_messages(tmp_path / "m.jsonl", messages))
    assert result.exit_code == 0
    assert "none corrupt, 38 changed: 181 messages" in result.stdout


def test_a_long_topic_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    value = base64.b64encode(b"{}").decode()
    path.write_text(
        json.dumps({"topic": "t" * 1_000_000, "partition": 0, "offset": 0, "value": value})
    )
    for command in ("validate", "stats", "sniff", "inspect"):
        assert len(run(command, path).output) < 20_000
    assert len(run("validate", "--json", path).output) < 20_000
    assert len(run("cat", "--format", "table", path).output) < 20_000
