"""``convert`` by the compiled kernel equals the reference in bytes, order and errors."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from kernel.test_writing import golden_messages
from kernel.test_writing_simple import usual_messages
from support.cli_tools import run, write_messages
from support.framed_data import framed_messages
from support.schema_registry import offline_registry
from support.turns import in_turn

from cdcfmt_cli import conversion
from cdcfmt_core.events import Message
from cdcfmt_core.texts import warn_zoneless
from cdcfmt_toolkit import message_schemas

pytestmark = pytest.mark.kernel

NEVER = 1 << 60
SOURCES = [
    ("canal-json", "tidb-extension"),
    ("canal-json", "default"),
    ("open", "default"),
    ("debezium", "tidb-extension"),
    ("simple-json", "default"),
    ("simple-avro", "default"),
    ("native", "dts/dts"),
    ("native", "canal/canal_flat"),
    ("native", "debezium/schema_default"),
]
TARGETS: dict[str, tuple[str, ...]] = {
    "canal-json": ("-w", "upsertAs=update", "--lines", "value"),
    "debezium": ("-w", "splitKeyUpdates=true"),
    "open-protocol": ("-w", "maxBatchSize=3"),
    "simple": ("-w", "encodingFormat=avro", "-w", "sendBootstrapInMsgCount=7"),
    "dts-avro": ("--partitions", "3"),
    "cloudcanal-json": ("-w", "maxMessageBytes=2000", "-w", "upsertAs=insert"),
}
SKIP = ("-w", "unsupportedEvents=skip", "-w", "unsupportedValues=skip")


def converted(first: int, *arguments: object) -> tuple[int, bytes, str]:
    """Exit code, output and notes, where the engine begins behind so many messages."""
    warn_zoneless.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time_ns", lambda: 1_700_000_000_000_000_000)
        patch.setattr(conversion, "FIRST", first)
        result = run("convert", *arguments)
    return result.exit_code, result.stdout_bytes, result.stderr


def check_equal(path: Path, *arguments: object, first: int = 0) -> int:
    """Convert both ways; the exit code."""
    found = converted(first, path, *arguments)
    assert found == converted(NEVER, path, *arguments)
    return found[0]


@pytest.mark.parametrize(
    ("protocol", "name", "target", "skips"), in_turn(SOURCES, TARGETS, [True, False], of=5)
)
def test_golden_messages(
    protocol: str, name: str, target: str, skips: bool, tmp_path: Path
) -> None:
    messages, _ = golden_messages(protocol, name)
    path = write_messages(tmp_path / "m.jsonl", messages)
    options = ("--to", target, *TARGETS[target])
    if skips:
        check_equal(path, *options, *SKIP, "--source-time-zone", "Asia/Shanghai")
    else:
        check_equal(path, *options, first=5)


@pytest.mark.parametrize("target", TARGETS)
def test_ordinary_rows_use_the_kernel(
    target: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_messages(tmp_path / "m.jsonl", usual_messages(1_000))
    with caplog.at_level(logging.DEBUG, "pyspark_cdcfmt"):
        assert check_equal(path, "--to", target, *SKIP) == 0
    counts = dict(re.findall(r"(read|written) by .*: (\d+)", caplog.text))
    assert int(counts["read"]) > 990
    # Bytes are quoted with tables of characters that Python has.
    assert int(counts["written"]) > (600 if target == "open-protocol" else 990)


@pytest.mark.parametrize(
    "chosen",
    [
        ("--include-tables", "golden.all_types", "--op", "insert,delete"),
        ("--kind", "ddl,watermark"),
        ("--exclude-tables", "golden.all_*", "--starting-commit-ts", "470604868600000000"),
        ("--from", "canal-json", "--include-tables", "golden.nothing"),
        ("--from", "debezium"),
    ],
    ids=str,
)
def test_filters(chosen: tuple[str, ...], tmp_path: Path) -> None:
    messages, _ = golden_messages("canal-json", "tidb-extension")
    path = write_messages(tmp_path / "m.jsonl", messages)
    check_equal(path, "--to", "canal-json", *chosen, *SKIP)


REGISTRIES = {
    "avro/avro_confluent": ("debezium", 40),
    "postgres/avro_confluent": ("debezium", 280),
    "ticdc_avro/avro/tidb-extension": ("ticdc-avro", 7),
}
"""The format of golden messages with a registry, and the least number that the kernel reads."""


def taken(log: str) -> list[int]:
    """The numbers of messages that the kernel has read."""
    return [int(count) for count in re.findall(r"read by the kernel: (\d+)", log)]


@pytest.mark.parametrize("name", REGISTRIES)
def test_messages_with_a_schema_registry(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    protocol, least = REGISTRIES[name]
    path = write_messages(tmp_path / "m.jsonl", framed_messages(name))
    with offline_registry(name) as server, caplog.at_level(logging.DEBUG, "pyspark_cdcfmt"):
        address = "-o", f"schema.registry.url={server.url}"
        for chosen in ((), ("--from", protocol)):
            check_equal(path, "--to", "canal-json", *chosen, *address, *SKIP)
    first, second = taken(caplog.text)
    assert min(first, second) >= least


@pytest.mark.parametrize("answers", [0, 8, 20])
def test_a_registry_that_dies(
    answers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages before the first unknown schema are converted.

    The kernel also needs the schemas of keys that the reference does not read.
    """
    # The check before a conversion needs all schemas of so short a file.
    monkeypatch.setattr(conversion.Conversion, "check", lambda *_: None)
    name = "avro/avro_confluent"
    path = write_messages(tmp_path / "m.jsonl", framed_messages(name))
    with offline_registry(name) as server:
        server.answers = answers
        address = f"schema.registry.url={server.url}", "schema.registry.max.retries=0"
        options = [each for option in (*address, "scanSchemas=false") for each in ("-o", option)]
        found = []
        for first in (0, NEVER):
            message_schemas.forget()
            server.requests.clear()
            found.append(converted(first, path, "--to", "canal-json", *options, *SKIP))
    (code, output, text), by_reference = found
    assert (code, text) == (by_reference[0], by_reference[2])
    assert code != 0
    assert "schema.registry.max.retries" in text
    assert by_reference[1].startswith(output)
    assert output.count(b"\n") >= answers


def spoilt(messages: Sequence[Message], chance: random.Random) -> list[Message]:
    """The messages with some bytes changed."""
    changed = []
    for message in messages:
        value = bytearray(message.value or b"")
        if value and chance.random() < 0.3:
            value[chance.randrange(len(value))] = chance.choice(b'0"{}[],\\x\xff')
        changed.append(attrs.evolve(message, value=bytes(value)))
    return changed


@pytest.mark.parametrize("source", SOURCES[:1] + SOURCES[2:7], ids=str)
def test_damaged_messages(source: tuple[str, str], tmp_path: Path) -> None:
    chance = random.Random(str(source))
    messages, _ = golden_messages(*source)
    path = write_messages(tmp_path / "m.jsonl", spoilt(messages, chance))
    for target in chance.sample(list(TARGETS), 2):
        check_equal(path, "--to", target, *TARGETS[target], *SKIP)


def test_several_formats_and_lines_of_values(tmp_path: Path) -> None:
    canal, _ = golden_messages("canal-json", "tidb-extension")
    debezium, _ = golden_messages("debezium", "tidb-extension")
    mixed = [message for pair in zip(canal, debezium, strict=False) for message in pair]
    path = write_messages(tmp_path / "m.jsonl", mixed)
    check_equal(path, "--to", "canal-json", *SKIP)
    values = tmp_path / "values.jsonl"
    values.write_bytes(
        b"\r\n".join([b"\xef\xbb\xbf", *(m.value or b"" for m in canal), b" ", b"x"])
    )
    for options in ((), ("-o", "lineSep=\r\n"), ("--line-format", "value")):
        check_equal(values, "--to", "debezium", *SKIP, *options)


def test_few_messages_load_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "conversion_engine", lambda: pytest.fail("it is loaded"))
    messages, _ = golden_messages("canal-json", "tidb-extension")
    path = write_messages(tmp_path / "m.jsonl", messages)
    assert run("convert", path, "--to", "canal-json", *SKIP).exit_code == 0
