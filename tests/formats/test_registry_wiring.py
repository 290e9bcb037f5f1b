"""Framed messages on every way: Python users, auto, files and the command line."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pytest
from click.testing import CliRunner
from support.framed_data import framed_messages
from support.framed_format import FramedFormat
from support.schema_registry import (
    OfflineRegistry,
    offline_registry,
    plain_responses,
)

from cdcfmt_cli.app import app
from cdcfmt_core import default_registry, open_decoder
from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_toolkit import message_schemas

SCHEMAS = {
    1: {"type": "record", "name": "Framed", "fields": [{"name": "id", "type": "int"}]},
    2: {
        "type": "record",
        "name": "Framed",
        "fields": [{"name": "id", "type": "int"}, {"name": "added", "type": "string"}],
    },
    3: {"type": "record", "name": "Other", "fields": [{"name": "id", "type": "int"}]},
}


def framed(number: int, row: dict[str, object]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMAS[number]), row)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


MESSAGES = [
    Message(None, framed(1, {"id": 1}), topic="t", partition=0, offset=0),
    Message(None, framed(2, {"id": 2, "added": "x"}), topic="t", partition=0, offset=1),
    Message(None, framed(1, {"id": 3}), topic="t", partition=0, offset=2),
]


@pytest.fixture(autouse=True)
def _with_the_format() -> Iterator[None]:
    default_registry.cache_clear()
    default_registry().register(FramedFormat(), "framed-test")
    message_schemas.forget()
    yield
    message_schemas.forget()
    default_registry.cache_clear()


@pytest.fixture
def server() -> Iterator[OfflineRegistry]:
    texts = {
        number: json.dumps(schema, separators=(",", ":")) for number, schema in SCHEMAS.items()
    }
    with offline_registry(responses=plain_responses(texts)) as found:
        yield found


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    lines = [
        json.dumps(
            {
                "key": None,
                "value": base64.b64encode(message.value or b"").decode(),
                "topic": message.topic,
                "partition": message.partition,
                "offset": message.offset,
            }
        )
        for message in MESSAGES
    ]
    path = tmp_path / "dump.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("protocol", ["framed-test", "auto"])
def test_each_message_is_read_with_its_own_schema(server: OfflineRegistry, protocol: str) -> None:
    decoder = open_decoder(protocol, {"schema.registry.url": server.url})
    rows = [event for message in MESSAGES for event in decoder.decode(message)]
    assert [
        event.after.values for event in rows if isinstance(event, RowChange) and event.after
    ] == [
        {"id": 1},
        {"id": 2, "added": "x"},
        {"id": 3},
    ]
    assert decoder.protocol == "framed-test"


def corrupt(protocol: str, message: Message, **options: str) -> str:
    given = {name.replace("_", "."): value for name, value in options.items()}
    (event,) = open_decoder(protocol, given).decode(message)
    assert isinstance(event, Corrupt)
    return str(event.error)


@pytest.mark.parametrize("protocol", ["auto", "canal-json"])
def test_without_an_address_the_error_names_the_option(protocol: str) -> None:
    text = corrupt(protocol, MESSAGES[0])
    assert "framed by a schema registry (0x00 and the schema id 1; Avro" in text
    assert "set schema.registry.url" in text
    header = Message(None, b"\2", (("apicurio.value.globalId", b"\0" * 7 + b"\1"),))
    assert "header apicurio.value.globalId" in corrupt("auto", header)


def test_another_format_and_another_schema(server: OfflineRegistry) -> None:
    text = corrupt("canal-json", MESSAGES[0], schema_registry_url=server.url)
    assert "protocol=canal-json, but the message looks like framed-test" in text
    other = Message(None, framed(3, {"id": 1}))
    text = corrupt("auto", other, schema_registry_url=server.url)
    assert "recognises the writer schema 3 (avro)" in text
    assert "framed-test" in text
    unknown = Message(None, b"\0\0\0\0\x63\x02")
    text = corrupt("auto", unknown, schema_registry_url=server.url)
    assert f"schema id 99 is not in the schema registry {server.url}" in text


@pytest.mark.parametrize("protocol", ["framed-test", "auto"])
def test_no_answer_ends_the_read(server: OfflineRegistry, protocol: str) -> None:
    server.status = 503
    options = {"schema.registry.url": server.url, "schema.registry.max.retries": "0"}
    with pytest.raises(SourceError, match="does not answer"):
        open_decoder(protocol, options).decode(MESSAGES[0])


def test_options_are_checked_early() -> None:
    with pytest.raises(OptionError, match=r"did you mean schema\.registry\.url"):
        open_decoder("auto", {"schema.registry.ulr": "http://x"})
    with pytest.raises(OptionError, match="http://host:8081"):
        open_decoder("auto", {"schema.registry.url": "registry:8081"})


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_cat_stats_and_validate(server: OfflineRegistry, dump: Path) -> None:
    address = f"schema.registry.url={server.url}"
    code, text = run("cat", str(dump), "-o", address, "--format", "json")
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert code == 0
    assert [row["after"] for row in rows] == [{"id": 1}, {"id": 2, "added": "x"}, {"id": 3}]
    code, text = run("stats", str(dump), "-o", address)
    assert code == 0
    assert "framed-test" in text
    assert run("validate", str(dump), "-o", address)[0] == 0
    code, text = run("validate", str(dump))
    assert code != 0
    assert "schema.registry.url" in text


def test_inspect_shows_the_writer_schema(server: OfflineRegistry, dump: Path) -> None:
    address = f"schema.registry.url={server.url}"
    code, text = run("inspect", str(dump), "--nth", "2", "-o", address, "--json")
    assert code == 0
    envelope = json.loads(text)["envelope"]
    assert envelope["value schema"] == "id 2, avro"
    assert envelope["value subjects"] == ["s2-value, version 1"]
    assert envelope["value writer schema"] == SCHEMAS[2]
    assert json.loads(text)["recognised"] == {"framed-test": 1.0}
    code, text = run("inspect", str(dump), "-o", address)
    assert code == 0
    assert "id 1, avro" in text


RECOGNISED = [
    ("avro/avro_confluent", "debezium"),
    ("avro/avro_apicurio_headers", "debezium"),
    ("postgres/avro_apicurio8", "debezium"),
    ("postgres/avro_confluent_unwrap", "debezium"),
    ("postgres/extjson_compact", "debezium"),
]


@pytest.mark.parametrize(("name", "protocol"), RECOGNISED)
def test_auto_recognises_messages_of_real_producers(name: str, protocol: str) -> None:
    with offline_registry(name) as server:
        values = {"schema.registry.url": server.url}
        if "extjson" in name:
            values["schema.registry.use.id"] = "globalId"
        decoder = open_decoder("auto", values)
        by_name = open_decoder(protocol, values)
        for message in itertools.islice(framed_messages(name), 150):
            events = decoder.decode(message)
            if message.value is not None:
                assert decoder.protocol == protocol, events
            assert list(map(type, events)) == list(map(type, by_name.decode(message)))
