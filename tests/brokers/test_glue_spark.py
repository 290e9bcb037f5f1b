"""Spark with AWS Glue's schema registry: moto behind an HTTP server, as workers are processes."""

from __future__ import annotations

import json
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import attrs
import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from pyspark.sql import SparkSession
from support.framed_data import framed_messages, golden_schemas

from cdcfmt_core import open_decoder
from cdcfmt_core.events import KIND_OF, Message
from cdcfmt_files.sources import wrap_line

SET = "ticdc_avro/avro/glue"
REGION = "eu-central-1"
_HEAD = 18
_ZLIB = 5


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of moto's Glue."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield boto3.client("glue", REGION)


@pytest.fixture
def endpoint(glue: Any) -> Iterator[str]:
    """The value of ``schema.registry.glue.endpoint.url``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["X-Amz-Target"] == "AWSGlue.GetSchemaVersion"
            try:
                status, body = 200, glue.get_schema_version(**given)
            except ClientError as error:
                status, body = 400, {"__type": error.response["Error"]["Code"]}
            body.pop("ResponseMetadata", None)
            data = json.dumps(body, default=str).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def registered(glue: Any) -> dict[bytes, bytes]:
    """The ids that moto gives to the schemas of a golden set, by TiCDC's ids."""
    ids = {}
    for number, schema in golden_schemas(SET).by_id.items():
        made = glue.create_schema(
            SchemaName=f"schema-{number}",
            DataFormat="AVRO",
            Compatibility="NONE",
            SchemaDefinition=schema.text,
        )
        ids[uuid.UUID(number).bytes] = uuid.UUID(made["SchemaVersionId"]).bytes
    return ids


def moved(data: bytes | None, ids: dict[bytes, bytes], *, compressed: bool) -> bytes | None:
    """The same payload with moto's id, compressed or not."""
    if data is None:
        return None
    head = bytes((3, _ZLIB if compressed else 0)) + ids[data[2:_HEAD]]
    return head + (zlib.compress(data[_HEAD:]) if compressed else data[_HEAD:])


def counted(rows: Any) -> Counter[Any]:
    return Counter(
        (kind, op, table, reason and "without key" in reason) for kind, op, table, reason in rows
    )


@pytest.mark.parametrize("protocol", ["auto", "ticdc-avro"])
def test_messages_of_ticdc(
    spark: SparkSession, glue: Any, endpoint: str, tmp_path: Path, protocol: str
) -> None:
    """Every second message is compressed, as Glue's serializers do."""
    ids = registered(glue)
    messages = [
        attrs.evolve(
            message,
            key=moved(message.key, ids, compressed=number % 2 == 0),
            value=moved(message.value, ids, compressed=number % 2 == 0),
        )
        for number, message in enumerate(framed_messages(SET))
    ]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(map(wrap_line, messages)))
    options = {
        "schema.registry.glue.region": REGION,
        "schema.registry.glue.endpoint.url": endpoint,
        "sourceTimeZone": "UTC",
        "protocol": protocol,
    }
    read = spark.read.format("cdc").options(**options).load(str(tmp_path))
    found = counted(read.select("kind", "op", "table", "_corrupt_record.reason").collect())
    assert found == counted(_by_decoder(protocol, options, messages))
    assert sum(found.values()) == len(messages)
    assert {op for _, op, _, _ in found} >= {"insert", "update", "delete"}


def _by_decoder(
    protocol: str, options: dict[str, str], messages: list[Message]
) -> Iterator[tuple[Any, ...]]:
    decoder = open_decoder(protocol, options)
    for message in messages:
        for event in decoder.decode(message):
            table = getattr(getattr(event, "table", None), "table", None)
            error = getattr(event, "error", None)
            yield KIND_OF[type(event)], getattr(event, "op", None), table, error and error.reason
