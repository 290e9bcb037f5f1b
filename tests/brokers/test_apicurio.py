"""A real Apicurio Registry: register, evolve, incompatible, delete, restart, references, ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.apicurio import Apicurio

from cdcfmt_core import default_registry
from cdcfmt_core.errors import DecodeError, SinkError, SourceError
from cdcfmt_core.options import validate
from cdcfmt_core.schema_registry import SchemaRegistry, WriterSchema
from cdcfmt_core.writer_schemas import open_registry, open_writer_schemas, registry_options
from cdcfmt_toolkit import message_schemas
from cdcfmt_toolkit.schema_directory import SchemaDirectory


@pytest.fixture
def server(apicurio: Apicurio) -> Apicurio:
    return apicurio


@pytest.fixture(autouse=True)
def _no_schemas_of_other_tests() -> None:
    message_schemas.forget()


def values_of(server: Apicurio, **more: Any) -> dict[str, Any]:
    given = {"schema.registry.url": server.url} | {
        f"schema.registry.{name.replace('_', '.')}": value for name, value in more.items()
    }
    return validate(given, registry_options(given, default_registry()), owner="test")


def opened(server: Apicurio, **more: Any) -> SchemaRegistry:
    found = open_registry(values_of(server, **more), default_registry())
    assert found is not None
    return found


def record(*fields: str, name: str = "R") -> WriterSchema:
    """A schema whose fields are strings; those with a ``?`` may be null."""
    described = [
        {"name": each.rstrip("?"), "type": ["null", "string"], "default": None}
        if each.endswith("?")
        else {"name": each, "type": "string"}
        for each in fields
    ]
    return WriterSchema(
        0, "avro", json.dumps({"type": "record", "name": name, "fields": described})
    )


def test_what_is_registered_can_be_read(server: Apicurio) -> None:
    registry = opened(server, topic="read")
    first = registry.register("value", "R", record("a"))
    assert registry.register("value", "R", record("a")) == first
    evolved = registry.register("value", "R", record("a", "b?"))
    assert evolved != first
    assert json.loads(registry.schema(first).text) == json.loads(record("a").text)
    assert json.loads(registry.schema(evolved).text)["fields"][1]["name"] == "b"
    assert registry.describe(evolved)["subjects"] == ["read-value, version 2"]
    framed, headers = registry.frame(evolved, b"\2", "value")
    assert registry.split(framed, headers, "value") == (evolved, b"\2")


def test_an_incompatible_schema_is_an_error_before_anything_is_written(server: Apicurio) -> None:
    registry = opened(server, topic="strict")
    registry.register("value", "R", record("a"))
    server.request("PUT", "/apis/ccompat/v7/config/strict-value", {"compatibility": "BACKWARD"})
    with pytest.raises(SinkError, match=r"strict-value: .*incompatible.*no row with it"):
        registry.register("value", "R", record("a", "b"))
    assert registry.register("value", "R", record("a", "b?"))


def test_schemas_that_must_be_registered_already(server: Apicurio) -> None:
    with pytest.raises(SinkError, match=r"not registered; set schema\.registry\.auto\.register"):
        opened(server, topic="none", auto_register_schemas=False).register(
            "value", "R", record("x")
        )
    known = opened(server, topic="some").register("value", "R", record("x"))
    lookup = opened(server, topic="some", auto_register_schemas=False)
    assert lookup.register("value", "R", record("x")) == known
    latest = opened(server, topic="some", use_latest_version=True)
    assert latest.register("value", "R", record("x")) == known
    with pytest.raises(SinkError, match=r"latest version, 1, is another schema"):
        latest.register("value", "R", record("x", "y?"))


def test_an_unknown_id_and_a_wrong_path(server: Apicurio) -> None:
    schemas = open_writer_schemas(values_of(server), None, default_registry())
    assert schemas is not None
    with pytest.raises(DecodeError, match="schema id 99999 is not in the schema registry"):
        schemas.split(b"\0\0\1\x86\x9f\2", (), "value")
    with pytest.raises(DecodeError, match="schema id globalId 99999 is not in the schema registry"):
        schemas.split(b"\0\0\0\0\0\0\1\x86\x9f\2", (), "value")
    for wrong in ("/apis/ccompat/v7/wrong", "", "/apis/registry/v2"):
        values = values_of(server)
        values["schema.registry.url"] = f"http://127.0.0.1:{server.port}{wrong}"
        registry = open_registry(values, default_registry())
        assert registry is not None
        with pytest.raises(SourceError, match=r"check the (address and )?path"):
            registry.schema(1)


def test_references_by_both_ids(server: Apicurio) -> None:
    inner = record("i", name="Inner").text
    server.request("POST", "/apis/ccompat/v7/subjects/Inner/versions", {"schema": inner})
    outer = json.dumps(
        {"type": "record", "name": "Outer", "fields": [{"name": "o", "type": "Inner"}]}
    )
    reference = {"name": "Inner", "subject": "Inner", "version": 1}
    number = server.request(
        "POST",
        "/apis/ccompat/v7/subjects/outer-value/versions",
        {"schema": outer, "references": [reference]},
    )["id"]
    global_id = server.request(
        "GET", "/apis/registry/v2/groups/default/artifacts/outer-value/versions/1/meta"
    )["globalId"]
    registry = opened(server)
    for found in (registry.schema(number), registry.schema(f"globalId {global_id}")):
        ((name, referenced),) = found.references
        assert name == "Inner"
        assert json.loads(referenced.text) == json.loads(inner)
        assert found.kind == "avro"


def test_a_deleted_subject_a_restart_and_a_replay(server: Apicurio, tmp_path: Path) -> None:
    kept = SchemaDirectory(str(tmp_path))
    registry = opened(server, topic="gone")
    number = int(str(registry.register("value", "R", record("g"))))
    data = b"\0" + number.to_bytes(4, "big") + b"\2g"
    schemas = open_writer_schemas(values_of(server), kept, default_registry())
    assert schemas is not None
    first = schemas.split(data, (), "value")
    server.request("DELETE", "/apis/ccompat/v7/subjects/gone-value")
    # Storage is in memory: nothing is left after a restart.
    server.stop()
    message_schemas.forget()
    fast = {"max_retries": 1, "retries_wait_ms": 1}
    alone = open_writer_schemas(values_of(server, **fast), None, default_registry())
    assert alone is not None
    with pytest.raises(SourceError, match="does not answer"):
        alone.split(data, (), "value")
    assert schemas.split(data, (), "value") == first, "it is kept"
    server.start()
    message_schemas.forget()
    assert schemas.split(data, (), "value") == first, "it is kept"
    message_schemas.forget()
    with pytest.raises(DecodeError, match=f"schema id {number} is not in the schema registry"):
        alone.split(data, (), "value")
