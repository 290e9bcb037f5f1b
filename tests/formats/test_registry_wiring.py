"""Framed messages on every way: Python users, auto, files and the command line."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import fastavro
import pytest
from click.testing import CliRunner
from support.framed_data import framed_messages
from support.framed_format import FramedFormat
from support.golden_data import load_variant, native_messages
from support.schema_registry import (
    OfflineRegistry,
    offline_registry,
    plain_responses,
)

from cdcfmt_cli.app import app
from cdcfmt_core import default_registry, open_decoder, open_encoder
from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_core.opening import decoding_options
from cdcfmt_core.schema_registry import Part
from cdcfmt_core.schema_scan import open_input_scan, open_schema_scan
from cdcfmt_toolkit import message_schemas
from pyspark_cdcfmt.options import parse_options

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


def test_another_schema(server: OfflineRegistry) -> None:
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


FORMATS_WITHOUT = ["canal-json", "open-protocol", "simple", "cloudcanal-json", "dts-avro"]


@pytest.mark.parametrize("protocol", FORMATS_WITHOUT)
def test_a_registry_for_a_format_without_one_is_an_error(protocol: str, tmp_path: Path) -> None:
    given = {"schema.registry.url": "http://localhost:1"}
    able = r"leave them out, .*Avro with a schema registry: debezium, framed-test, ticdc-avro"
    with pytest.raises(OptionError, match=rf"{protocol} is read without a schema .*{able}"):
        open_decoder(protocol, given)
    with pytest.raises(OptionError, match=rf"{protocol} is written without a schema .*{able}"):
        open_encoder(protocol, given)
    (tmp_path / "a.jsonl").write_bytes(b"{}\n")
    options = {"protocol": protocol, "path": str(tmp_path), **given}
    with pytest.raises(OptionError, match=f"{protocol} is read without"):
        parse_options(options)
    flags = ("--protocol", protocol, "-o", "schema.registry.url=http://localhost:1")
    code, text = run("cat", str(tmp_path / "a.jsonl"), *flags)
    assert code == 2
    assert f"{protocol} is read without a schema registry" in " ".join(text.split())


def _without_registry() -> Iterator[tuple[str, Message]]:
    """Messages of formats whose bytes begin as a registry's framing, and others."""
    for folder in ("open", "canal-json", "simple-avro"):
        for golden in load_variant(folder, "default").messages:
            yield folder, golden.message
    for message in native_messages("dts/dts"):
        yield "dts", message


def test_auto_requests_no_ids_for_formats_without_a_registry(server: OfflineRegistry) -> None:
    decoder = open_decoder("auto", {"schema.registry.url": server.url})
    plain = open_decoder("auto", {})
    binary: Counter[str] = Counter()
    for folder, message in _without_registry():
        for part in get_args(Part):
            binary[folder] += (getattr(message, part) or b"")[:1] == b"\0"
            assert decoder.split(message, part) is None
        events, wanted = decoder.decode(message), plain.decode(message)
        assert repr(events) == repr(wanted)
        assert decoder.protocol == plain.protocol
    assert binary["open"] > 100
    assert binary["dts"] > 100
    assert server.requests == []


def test_auto_scans_for_schemas_without_requests(server: OfflineRegistry) -> None:
    common, own = decoding_options("auto", {"schema.registry.url": server.url}, default_registry())
    scan = open_schema_scan(common, own, default_registry())
    assert scan is not None
    for _, message in _without_registry():
        list(scan(message))
    assert server.requests == []


@pytest.mark.parametrize("first", [1, 256, 300, 511])
def test_keys_with_ids_of_8_bytes_are_not_of_open_protocol(first: int) -> None:
    key = b"\0" + first.to_bytes(8, "big") + b"\x02\x0aid-{}"
    spec = default_registry().get_codec("open-protocol")
    assert spec.sniff(Message(key, b"\0" + first.to_bytes(8, "big") + b"\0\x02x")) == 0.0


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


def _canal_rows() -> list[bytes]:
    """The rows of TiCDC's Canal-JSON."""
    messages = load_variant("canal-json", "tidb-extension").messages
    values = (golden.message.value or b"" for golden in messages)
    return [row for row in values if b'"isDdl":false' in row and b"TIDB_WATERMARK" not in row]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("protocol", "subjects", "options"),
    [
        ("debezium", 4, {"encodingFormat": "avro", "enableTidbExtension": "true"}),
        # Keys and values have records of the same name.
        ("ticdc-avro", 2, {"enableTidbExtension": "true", "avroIncludeBeforeValue": "true"}),
    ],
)
def test_convert_writes_avro_and_reads_it(
    server: OfflineRegistry,
    tmp_path: Path,
    protocol: str,
    subjects: int,
    options: dict[str, str],
) -> None:
    """JSON to Avro to JSON by the command line."""
    names = ("source", "avro", "twice", "once")
    source, avro, twice, once = (tmp_path / f"{name}.jsonl" for name in names)
    source.write_bytes(b"\n".join(row for row in _canal_rows() if b'"table":"txn_' in row))
    address = f"schema.registry.url={server.url}"
    strategy = "subject.name.strategy=TopicRecordNameStrategy"
    writing = [
        *(f"{name}={value}" for name, value in options.items()),
        address,
        "schema.registry.topic=shop",
        f"schema.registry.key.{strategy}",
        f"schema.registry.value.{strategy}",
    ]
    flags = list(itertools.chain.from_iterable(("-w", each) for each in writing))
    zone = ("-o", "sourceTimeZone=UTC")
    code, text = run("convert", str(source), *zone, "--to", protocol, *flags, "--output", str(avro))
    assert code == 0, text
    assert len(server.subjects) == subjects
    back = ("--to", "canal-json", "-w", "enableTidbExtension=true", "--output")
    assert run("convert", str(source), *zone, *back, str(once))[0] == 0
    code, text = run("convert", str(avro), "-o", address, *zone, *back, str(twice))
    assert code == 0, text
    assert len(_lines(once)) == len(_lines(avro)) == len(_lines(twice)) > 5
    for direct, other in zip(_lines(once), _lines(twice), strict=True):
        one, two = (json.loads(base64.b64decode(each["value"])) for each in (direct, other))
        for name in ("type", "database", "table", "data", "old", "_tidb"):
            assert one[name] == two[name]


def test_convert_keeps_the_file_if_a_schema_is_refused(
    server: OfflineRegistry, tmp_path: Path
) -> None:
    """With one subject for several tables."""
    server.compatible = False
    source, output = tmp_path / "source.jsonl", tmp_path / "avro.jsonl"
    source.write_bytes(b"\n".join(_canal_rows()))
    output.write_text("kept", "utf-8")
    flags = ("-w", f"schema.registry.url={server.url}", "-w", "schema.registry.topic=shop")
    more = ("-w", "encodingFormat=avro", "-w", "unsupportedValues=skip")
    code, text = run(
        "convert", str(source), "--to", "debezium", *flags, *more, "--output", str(output)
    )
    assert code == 3
    assert "the schema is incompatible" in text
    assert output.read_text("utf-8") == "kept"


def test_auto_finds_the_schemas_of_statements() -> None:
    """Before it decodes rows, which may stand before them in other files."""
    name = "avro/avro_confluent"
    messages = framed_messages(name)
    found = []
    with offline_registry(name) as server:
        for protocol in ("debezium", "auto"):
            values = {"schema.registry.url": server.url}
            scan = open_input_scan(*decoding_options(protocol, values, default_registry()))
            assert scan is not None
            records = [record for message in messages for record in scan(message)]
            found.append([(r.stream, r.position, r.table.name, r.table.columns) for r in records])
    assert found[0] == found[1]
    assert len(found[0]) > 10
