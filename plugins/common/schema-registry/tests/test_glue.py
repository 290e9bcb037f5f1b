"""AWS Glue's schema registry: moto stands in for AWS, and TiCDC's messages have the framing."""

from __future__ import annotations

import base64
import gzip
import json
import uuid
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws
from support.schema_registry import GOLDEN

from cdcfmt_core import default_registry, open_decoder
from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import DecodeError, OptionError, SourceError
from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_core.options import validate
from cdcfmt_core.schema_registry import MessageSchemas, SchemaRegistry
from cdcfmt_core.writer_schemas import open_registry, open_writer_schemas, registry_options
from cdcfmt_schema_registry import glue
from cdcfmt_schema_registry.glue import GlueRegistry
from cdcfmt_toolkit import message_schemas

SOME = "00000000-0000-4000-8000-000000000001"
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    message_schemas.forget()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")


def values_of(**more: Any) -> dict[str, Any]:
    given = {
        "schema.registry.glue.region": "eu-central-1",
        **{f"schema.registry.{name.replace('_', '.')}": value for name, value in more.items()},
    }
    return validate(given, registry_options(given, default_registry()), owner="test")


def opened(**more: Any) -> MessageSchemas:
    found = open_writer_schemas(values_of(**more), None, default_registry())
    assert found is not None
    return found


@pytest.fixture
def registered() -> Iterator[str]:
    """The version of a schema that is registered."""
    import boto3

    glue._client.cache_clear()
    with mock_aws():
        made = boto3.client("glue", "eu-central-1").create_schema(
            SchemaName="orders-value",
            DataFormat="AVRO",
            Compatibility="NONE",
            SchemaDefinition=RECORD,
        )
        yield str(made["SchemaVersionId"])
    glue._client.cache_clear()


def framed(version: str, payload: bytes, compression: int = 0) -> bytes:
    return bytes((3, compression)) + uuid.UUID(version).bytes + payload


@pytest.mark.parametrize("compression", [0, 5])
def test_a_registered_schema(registered: str, compression: int) -> None:
    payload = zlib.compress(b"\2") if compression else b"\2"
    found = opened().split(framed(registered, payload, compression), (), "value")
    assert found is not None
    assert (found.schema.id, found.schema.kind, found.schema.text) == (registered, "avro", RECORD)
    assert bytes(found.payload) == b"\2"


def test_subjects(registered: str) -> None:
    registry = open_registry(values_of(), default_registry())
    assert registry is not None
    (subject,) = registry.describe(registered)["subjects"]
    assert subject.endswith("/orders-value, version 1")


@pytest.mark.usefixtures("registered")
def test_an_unknown_version_is_a_bad_message() -> None:
    with pytest.raises(DecodeError, match=f"schema id {SOME} is not in .* AWS Glue eu-central"):
        opened().split(framed(SOME, b"\2"), (), "value")


def test_no_answer_ends_the_read() -> None:
    nowhere = opened(glue_endpoint_url="http://127.0.0.1:1", max_retries=1, timeout=1)
    with pytest.raises(SourceError, match="AWS Glue eu-central-1 does not answer"):
        nowhere.split(framed(SOME, b"\2"), (), "value")


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    schemas = opened(glue_endpoint_url="http://127.0.0.1:2", max_retries=0, timeout=1)
    with pytest.raises(SourceError, match="no credentials"):
        schemas.split(framed(SOME, b"\2"), (), "value")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"no zlib", "damaged"),
        (zlib.compress(b"x" * 1000)[:-8], "cut off"),
        (b"", "cut off"),
    ],
)
def test_damaged_payloads(payload: bytes, reason: str) -> None:
    registry: SchemaRegistry = GlueRegistry("r", None, None, 0, 1)
    with pytest.raises(DecodeError, match=reason):
        registry.split(framed(str(uuid.uuid4()), payload, 5), (), "value")


def test_a_bomb_is_an_error() -> None:
    bomb = zlib.compressobj(1)
    data = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(200)) + bomb.flush()
    assert len(data) < DEFAULT_MAX_MESSAGE_BYTES // 100
    registry: SchemaRegistry = GlueRegistry("r", None, None, 0, 1)
    with pytest.raises(DecodeError, match=r"more than .* bytes when decompressed"):
        registry.split(framed(str(uuid.uuid4()), data, 5), (), "value")


def test_options_of_two_registries() -> None:
    given = {"schema.registry.url": "http://x", "schema.registry.glue.region": "r"}
    with pytest.raises(OptionError, match=r"exactly one of schema\.registry\.glue\.region, schema"):
        open_decoder("auto", given)


def test_messages_of_ticdc(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = GOLDEN / "ticdc_avro/avro/glue"
    with gzip.open(folder / "registry.json.gz", "rt") as file:
        known = {each["id"]: each["schema"] for each in json.load(file)}
    with gzip.open(folder / "messages.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]

    def version(self: GlueRegistry, schema_id: object) -> dict[str, str]:
        return {"DataFormat": "AVRO", "SchemaDefinition": known[str(schema_id)]}

    # The versions have ids of their own, which moto cannot be given.
    monkeypatch.setattr(GlueRegistry, "_version", version)
    decoder = open_decoder("auto", values_of())
    rows = 0
    for line in lines:
        key, value = (
            None if line[part] is None else base64.b64decode(line[part])
            for part in ("key_b64", "value_b64")
        )
        for event in decoder.decode(Message(key, value, topic=line["topic"])):
            # TiCDC does not write which row of a table without key is deleted.
            assert not isinstance(event, Corrupt) or "a delete without key" in str(event.error)
            rows += isinstance(event, RowChange | Corrupt)
    assert decoder.protocol == "ticdc-avro"
    assert rows == sum(len(line["events"]) for line in lines)
