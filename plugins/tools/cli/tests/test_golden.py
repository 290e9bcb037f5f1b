"""``inspect`` explains every golden message: its protocol, kinds and tables."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.cli_tools import run, run_lines, write_messages
from support.golden_data import (
    CODECS,
    GOLDEN,
    Variant,
    load_variant,
    native_messages,
    read_jsonl,
    reading_options,
    variant_names,
)

from cdcfmt_core.events import Message

VARIANTS = [(protocol, name) for protocol in CODECS for name in variant_names(protocol)]


def explained(path: Path, *options: str, protocol: str | None = None) -> list[Any]:
    given = [part for option in options for part in ("-o", option)]
    if protocol is not None:
        given += ["--protocol", protocol]
    shape = ("--json", "--count", 1_000_000, "--numbers", "exact")
    return run_lines("inspect", path, *shape, *given)


def numbered(messages: Iterable[Message]) -> Iterator[Message]:
    for number, message in enumerate(messages):
        yield attrs.evolve(message, offset=number)


def places(explanation: Any) -> list[tuple[str, str | None, str | None, str | None]]:
    """Kind, operation, database and table of each event."""
    return [
        (event["kind"], event.get("op"), event.get("database"), event.get("table"))
        for event in explanation["events"]
    ]


def in_parts(variant: Variant) -> Iterator[Message]:
    """A file of the storage sink holds many messages."""
    for golden in variant.messages:
        parts = [golden.message.value or b""]
        if variant.name.startswith("storage"):
            parts = parts[0].split(b"\r\n")
        yield from (Message(golden.key, part) for part in parts if part)


@pytest.mark.parametrize(("protocol", "name"), VARIANTS)
def test_every_message_of_ticdc(protocol: str, name: str, tmp_path: Path) -> None:
    variant = load_variant(protocol, name)
    path = write_messages(tmp_path / "m.jsonl", numbered(in_parts(variant)))
    options = [f"{key}={value}" for key, value in reading_options(variant).items()]
    explanations = explained(path, *options)
    assert {e["protocol"] for e in explanations} == {CODECS[protocol]}
    assert all(e["envelope"] for e in explanations)
    assert not any(e["broken"] for e in explanations)
    found = [place for e in explanations for place in places(e)]
    bootstraps = [place for place in found if place[0] == "schema"]
    assert len(bootstraps) == sum(golden.kind == "bootstrap" for golden in variant.messages)
    assert all(database and table for _, _, database, table in bootstraps)
    found = [place for place in found if place[0] != "schema"]
    truth = [event for golden in variant.messages for event in golden.truth]
    assert [kind for kind, *_ in found] == [event["kind"] for event in truth]
    for (kind, op, database, table), event in zip(found, truth, strict=True):
        if kind == "row":
            assert (database, table) == (event["schema"], event["table"])
            assert op in (event["op"], "upsert")
        elif kind == "ddl":
            # Simple's DDL of databases has a name only in its statement.
            nameless = protocol.startswith("simple") and not table
            assert nameless or (database or "") in (event["schema"], event.get("pre_schema"))
            assert (table or "") in (event["table"], event.get("pre_table"))


@pytest.mark.parametrize("name", ["canal_flat", "canal_flat_hash"])
def test_every_message_of_canal(name: str, tmp_path: Path) -> None:
    messages = list(native_messages(f"canal/{name}"))
    explanations = explained(write_messages(tmp_path / "m.jsonl", messages))
    for message, explanation in zip(messages, explanations, strict=True):
        wire = json.loads(message.value or b"")
        assert explanation["protocol"] == "canal-json"
        assert explanation["position"]["offset"] == message.offset
        assert explanation["position"]["partition"] == message.partition
        assert explanation["envelope"].keys() == wire.keys()
        op = None if wire["isDdl"] else wire["type"].lower()
        count = 1 if wire["isDdl"] else len(wire["data"])
        kind = "ddl" if wire["isDdl"] else "row"
        assert (
            places(explanation)
            == [(kind, op, wire["database"] or None, wire["table"] or None)] * count
        )


CONNECTOR_SETTINGS = {
    "noschema_default": ("timePrecisionMode=adaptive_time_microseconds",),
    "noschema_strings": (
        "decimalHandlingMode=string",
        "timePrecisionMode=connect",
        "binaryHandlingMode=base64",
    ),
}
"""Settings of the connector that its messages lack."""

OPS = {"c": "insert", "u": "update", "d": "delete", "r": "read", "t": "truncate"}


@pytest.mark.parametrize("name", ["schema_default", "noschema_default", "noschema_strings"])
def test_every_message_of_debezium(name: str, tmp_path: Path) -> None:
    messages = list(numbered(native_messages(f"debezium/{name}")))
    path = write_messages(tmp_path / "m.jsonl", messages)
    explanations = explained(path, *CONNECTOR_SETTINGS.get(name, ()))
    seen = set()
    for message, explanation in zip(messages, explanations, strict=True):
        if message.value is None:
            assert explanation["events"] == []
            continue
        assert explanation["protocol"] == "debezium"
        wire = json.loads(message.value)
        payload = wire["payload"] if wire.keys() == {"schema", "payload"} else wire
        (kind,) = {kind for kind, *_ in places(explanation)}
        seen.add(kind)
        if "op" in payload:
            source = payload["source"]
            assert places(explanation) == [
                ("row", OPS[payload["op"]], source["db"], source["table"])
            ]
        elif "ddl" in payload:
            assert kind == "ddl"
            assert all(event["ddl"]["query"] in payload["ddl"] for event in explanation["events"])
        else:
            assert kind == "transaction"
            assert explanation["events"][0]["extra"]["transaction_id"] == payload["id"]
    assert seen >= {"row", "ddl"}


def test_every_flattened_message(tmp_path: Path) -> None:
    messages = list(numbered(native_messages("debezium/schema_unwrap_rewrite")))
    path = write_messages(tmp_path / "m.jsonl", messages)
    explanations = explained(path, "flattened=true", protocol="debezium")
    rows = 0
    for message, explanation in zip(messages, explanations, strict=True):
        if message.value is not None and b'"ddl"' not in message.value:
            rows += 1
            ((kind, op, _, table),) = places(explanation)
            payload = json.loads(message.value)["payload"]
            assert (kind, table) == ("row", payload["__table"])
            assert op == ("delete" if payload["__deleted"] == "true" else OPS[payload["__op"]])
    assert rows


KINDS_OF_DTS = dict.fromkeys(("BEGIN", "COMMIT", "ROLLBACK", "ABORT"), "transaction")


def test_every_record_of_dts(tmp_path: Path) -> None:
    messages = list(native_messages("dts/dts"))
    explanations = explained(write_messages(tmp_path / "m.jsonl", messages))
    truth = {
        line["offset"]: line["avro_json"] for line in read_jsonl("native/dts/dts_truth.jsonl.gz")
    }
    for message, explanation in zip(messages, explanations, strict=True):
        record = truth[message.offset]
        assert explanation["protocol"] == "dts-avro"
        assert explanation["envelope"]["operation"] == record["operation"]
        assert explanation["envelope"]["id"] == record["id"]
        ((kind, op, database, table),) = places(explanation)
        operation = record["operation"]
        if record["beforeImages"] is None and record["afterImages"] is None:
            assert kind == KINDS_OF_DTS.get(operation, "heartbeat")
        elif operation == "DDL":
            assert kind == "ddl"
        else:
            assert (kind, op) == ("row", operation.lower())
            parts = record["objectName"]["string"].split(".")
            assert [database, table] == [
                part.replace("\\u002E", ".") for part in parts[:: len(parts) - 1]
            ]


def test_messages_of_a_format_that_is_not_installed(tmp_path: Path) -> None:
    messages = list(native_messages("maxwell/maxwell"))
    explanations = explained(write_messages(tmp_path / "m.jsonl", messages))
    assert len(explanations) == len(messages)
    for message, explanation in zip(messages, explanations, strict=True):
        assert explanation["protocol"] is None
        (event,) = explanation["events"]
        assert "no installed format recognises" in event["_corrupt_record"]["reason"]
        assert explanation["envelope"] == json.loads(message.value or b"")


def test_every_golden_folder_is_covered() -> None:
    # Those of avro, postgres and ticdc_avro need a schema registry: test_registry_wiring.py.
    folders = chain(*(GOLDEN.glob(f"{of}/*") for of in ("native", "ticdc")))
    found = {str(path.relative_to(GOLDEN)) for path in folders if path.is_dir()}
    assert found - {"native/workload"} == {f"ticdc/{protocol}" for protocol in CODECS} | {
        "native/canal", "native/debezium", "native/dts", "native/maxwell",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("canal/canal_flat", ["canal-json", "bigint(20) unsigned", "Int(64) unsigned", "before"]),
        ("debezium/schema_default", ["debezium", "payload.op", "source_time"]),
        ("dts/dts", ["dts-avro", "sourcePosition", "objectName"]),
        ("maxwell/maxwell", ["not recognised", "no installed format"]),
    ],
)
def test_text_output_names_the_format(name: str, expected: list[str], tmp_path: Path) -> None:
    path = write_messages(tmp_path / "m.jsonl", numbered(native_messages(name)))
    text = run("inspect", path, "--count", 40, "--raw").stdout
    assert text.count("message ") >= 25
    for word in expected:
        assert word in text


def test_raw_numbers_keep_their_digits(tmp_path: Path) -> None:
    value = b'{"price":1.50,"exact":0.10000000000000000001,"large":1e5}'
    path = write_messages(tmp_path / "m.jsonl", [Message(None, value)])
    text = run("inspect", path, "--raw").stdout
    for digits in ('"price": 1.50', '"exact": 0.10000000000000000001', '"large": 1e5'):
        assert digits in text


def test_the_frames_of_the_open_protocol(tmp_path: Path) -> None:
    variant = load_variant("open", "batched")
    path = write_messages(tmp_path / "m.jsonl", numbered(g.message for g in variant.messages))
    (batch, *_) = (g for g in variant.messages if len(g.truth) > 2)
    result = run("inspect", path, "--offset", batch.seq, "--raw")
    assert result.exit_code == 0
    for index in range(len(batch.truth)):
        assert f"key[{index}]" in result.stdout
        assert f"event {index + 1} of {len(batch.truth)}" in result.stdout
    assert "00000000  00 00 00 00 00 00 00 01" in result.stdout


def test_choosing_a_message(tmp_path: Path) -> None:
    messages = list(native_messages("canal/canal_flat_hash"))
    path = write_messages(tmp_path / "m.jsonl", messages)
    ((third,), (at,)) = (
        explained_one(path, "--nth", "3"),
        explained_one(path, "--offset", str(messages[9].offset), "--partition", "2"),
    )
    assert third["number"] == 3
    assert (at["position"]["offset"], at["position"]["partition"]) == (messages[9].offset, 2)
    missing = run("inspect", path, "--nth", 100_000)
    assert missing.exit_code == 1
    assert "no message 100000" in missing.stderr
    assert run("inspect", path, "--nth", 1, "--offset", 2).exit_code == 2


def explained_one(path: Path, *options: str) -> list[Any]:
    return run_lines("inspect", path, "--json", *options)


def test_position_of_truncated_json(tmp_path: Path) -> None:
    value = b'{"database":"d","table":"t","isDdl":false,"type":"INSERT","es";1,"data":[]}'
    path = write_messages(tmp_path / "m.jsonl", [Message(None, value)])
    lines = run("inspect", path).stdout.splitlines()
    # The place in the value, and the reason of the event.
    index, _ = (number for number, line in enumerate(lines) if "not JSON from byte 62" in line)
    assert lines[index + 1][lines[index + 2].index("^")] == ";"
    assert base64.b64encode(value)
