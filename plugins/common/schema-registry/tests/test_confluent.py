"""Writer schemas of golden messages from the answers that a real registry gave, and failures."""

from __future__ import annotations

import io
import json
import pickle
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from support.certificates import make_certificates
from support.framed_data import framed_messages
from support.schema_registry import (
    OfflineRegistry,
    golden_registry,
    kept_path,
    offline_registry,
    plain_responses,
)

from cdcfmt_core import default_registry
from cdcfmt_core.errors import CdcfmtError, DecodeError, OptionError, SourceError
from cdcfmt_core.options import validate
from cdcfmt_core.schema_registry import MessageSchemas, WriterSchema
from cdcfmt_core.writer_schemas import open_registry, open_writer_schemas, registry_options
from cdcfmt_toolkit import message_schemas
from cdcfmt_toolkit.schema_directory import SchemaDirectory

RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
FAST = {"max.retries": 1, "retries.wait.ms": 1, "retries.max.wait.ms": 1, "timeout": 2}
SETS = [
    "postgres/avro_confluent",
    "postgres/avro_confluent_refs",
    "postgres/avro_apicurio8",
    "postgres/avro_apicurio_headers",
    "avro/avro_apicurio_headers",
    "avro/avro_confluent_decstring",
]


@pytest.fixture(autouse=True)
def _no_schemas_of_other_tests() -> Iterator[None]:
    message_schemas.forget()
    yield
    message_schemas.forget()


def opened(url: str | None, kept: Any = None, **more: Any) -> MessageSchemas:
    given = {f"schema.registry.{name.replace('_', '.')}": value for name, value in more.items()}
    if url is not None:
        given["schema.registry.url"] = url
    registry = default_registry()
    declared = registry_options(given, registry)
    values = validate(given, declared, owner="test")
    found = open_writer_schemas(values, kept, registry)
    assert found is not None
    return found


def parsed(schema: WriterSchema) -> Any:
    """The schema for fastavro, with its references."""
    named: dict[str, Any] = {}

    def add(each: WriterSchema) -> Any:
        for _, reference in each.references:
            add(reference)
        return fastavro.parse_schema(json.loads(each.text), named_schemas=named)

    return add(schema)


@pytest.mark.parametrize("name", SETS)
def test_every_golden_message_is_read_by_its_own_schema(name: str) -> None:
    known = {
        key: each
        for each in golden_registry(name)["schemas"]
        for key in (("global", each["global_id"]), ("content", each["content_id"]))
    }
    messages, seen = 0, set()
    with offline_registry(name) as server:
        schemas = opened(server.url)
        for message in framed_messages(name):
            for part, data in (("key", message.key), ("value", message.value)):
                if data is None:
                    continue
                framed = schemas.split(data, message.headers, part)
                assert framed is not None
                messages += 1
                if framed.schema.id in seen:
                    continue
                seen.add(framed.schema.id)
                number = int(str(framed.schema.id).split()[-1])
                kind = "global" if "globalId" in str(framed.schema.id) else "content"
                wanted = known[kind, number]
                assert json.loads(framed.schema.text) == json.loads(wanted["schema"])
                assert wanted["subject"].endswith(f"-{part}") or part == "value"
                assert len(framed.schema.references) == len(wanted["references"])
        asked = [path for path in server.requests if "/ids/" in path]
    assert messages > 350
    assert len(seen) > 20
    assert len(asked) == len(set(asked)), "each id is requested once"


def test_references_define_the_names_that_a_schema_uses() -> None:
    name = "postgres/avro_confluent_refs"
    with offline_registry(name) as server:
        schemas = opened(server.url)
        (message, *_) = framed_messages(name)
        assert message.value is not None
        framed = schemas.split(message.value, (), "value")
        assert framed is not None
        names = [name for name, _ in framed.schema.references]
        assert "io.debezium.connector.postgresql.Source" in names
        record = fastavro.schemaless_reader(
            io.BytesIO(bytes(framed.payload)), parsed(framed.schema)
        )
    assert record["op"] == "r"
    assert record["source"]["table"] == "child"


@pytest.mark.parametrize("name", ["postgres/extjson_compact", "postgres/extjson_pretty"])
def test_json_with_a_framing(name: str) -> None:
    with offline_registry(name) as server:
        schemas = opened(server.url, use_id="globalId")
        (message, *_) = framed_messages(name)
        assert message.value is not None
        framed = schemas.split(message.value, (), "value")
    assert framed is not None
    assert framed.schema.kind == "json"
    assert bytes(framed.payload).startswith(b'{"before":null,"after":{')
    assert bytes(framed.payload).endswith(b"}")


@pytest.fixture
def server() -> Iterator[OfflineRegistry]:
    with offline_registry(responses=plain_responses({1: RECORD, 7: '"string"'})) as found:
        yield found


def split(schemas: MessageSchemas, number: int) -> WriterSchema:
    framed = schemas.split(b"\0" + number.to_bytes(4, "big") + b"\x02", (), "value")
    assert framed is not None
    assert bytes(framed.payload) == b"\x02"
    return framed.schema


def test_an_unknown_id_is_a_bad_message_that_names_the_registry(server: OfflineRegistry) -> None:
    schemas = opened(server.url)
    with pytest.raises(DecodeError, match=r"schema id 5 is not in the schema registry http://127"):
        split(schemas, 5)
    asked = len(server.requests)
    with pytest.raises(DecodeError, match="schema id 5"):
        split(schemas, 5)
    assert len(server.requests) == asked, "the same id is not asked for each message"
    assert split(schemas, 1).text == RECORD


@pytest.mark.parametrize("status", [500, 503, 429])
def test_no_answer_ends_the_read(server: OfflineRegistry, status: int) -> None:
    server.status = status
    with pytest.raises(SourceError, match=rf"does not answer \(HTTP {status}.*Nothing is lost"):
        split(opened(server.url, **FAST), 1)
    assert len(server.requests) == 2, "it is asked again first"
    server.status = None
    assert split(opened(server.url, **FAST), 1).id == 1


def test_a_dead_and_a_slow_registry(server: OfflineRegistry) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(SourceError, match="does not answer"):
        split(opened(f"http://127.0.0.1:{port}", **FAST), 1)
    server.seconds = 5
    with pytest.raises(SourceError, match=r"does not answer.*schema\.registry\.timeout"):
        split(opened(server.url, **{**FAST, "timeout": 1, "max.retries": 0}), 1)
    server.seconds = 0


@pytest.mark.parametrize("body", [b"<html>a proxy</html>", b"[]", b"{}", b'"x"', b"null", b""])
def test_an_answer_of_something_else(server: OfflineRegistry, body: bytes) -> None:
    server.body = body
    with pytest.raises(CdcfmtError, match=r"schema registry http://127.*|schema id 1: "):
        split(opened(server.url, **FAST), 1)


def test_a_wrong_path_makes_no_bad_rows(server: OfflineRegistry) -> None:
    with pytest.raises(SourceError, match=r"no such address \(HTTP 404\): check the path"):
        split(opened(server.address, **FAST), 1)


def test_login(server: OfflineRegistry) -> None:
    server.login = "user:se:cret"
    with pytest.raises(SourceError, match=r"refuses the login \(HTTP 401\): check schema\."):
        split(opened(server.url, **FAST), 1)
    schemas = opened(server.url, **{"basic.auth.user.info": "user:se:cret"})
    assert split(schemas, 1).text == RECORD
    message_schemas.forget()
    in_url = server.url.replace("http://", "http://user:se%3Acret@")
    schemas = opened(in_url)
    assert split(schemas, 1).text == RECORD
    for text in (repr(schemas), str(schemas), str(schemas.registry.name)):
        assert "cret" not in text
    copy = pickle.loads(pickle.dumps(schemas))
    assert split(copy, 7).text == '"string"'


def test_forbidden(server: OfflineRegistry) -> None:
    server.status = 403
    with pytest.raises(SourceError, match=r"refuses access.*check schema\.registry\.basic"):
        split(opened(server.url, **FAST), 1)


def test_secrets_stand_in_no_error(server: OfflineRegistry) -> None:
    secret = {"basic.auth.user.info": "user:hunter2"}
    server.status = 401
    with pytest.raises(SourceError) as caught:
        split(opened(server.url, **FAST, **secret), 1)
    assert "hunter2" not in str(caught.value)
    for wrong in ({"basic.auth.user.info": "hunter2"}, {"url": "ftp://user:hunter2@host"}):
        url = wrong.pop("url", server.url)
        with pytest.raises(OptionError) as refused:
            opened(url, **wrong)
        assert "hunter2" not in str(refused.value)
    with pytest.raises(OptionError) as refused:
        split(opened(server.url, **{"ssl.key.password": "hunter2"}), 1)
    assert "hunter2" not in str(refused.value)


def test_options_of_java_and_misspelt_ones(server: OfflineRegistry) -> None:
    with pytest.raises(OptionError, match=r"has no option.*did you mean schema\.registry\.url"):
        opened(None, ulr="x")
    with pytest.raises(OptionError, match="PEM files"):
        opened(server.url, **{"ssl.truststore.location": "x"})
    with pytest.raises(OptionError, match=r"schema\.registry\.url"):
        opened(None, timeout=3)


def test_schemas_are_kept_for_a_replay_without_the_registry(
    server: OfflineRegistry, tmp_path: Path
) -> None:
    kept = SchemaDirectory(str(tmp_path))
    assert split(opened(server.url, kept), 1).text == RECORD
    assert len(kept_path(tmp_path)) == 1
    message_schemas.forget()
    server.status = 500
    requests = len(server.requests)
    # With the address, and without any option.
    assert split(opened(server.url, kept), 1).text == RECORD
    message_schemas.forget()
    registry = default_registry()
    alone = open_writer_schemas({}, kept, registry)
    assert alone is not None
    assert split(alone, 1).text == RECORD
    assert len(server.requests) == requests
    with pytest.raises(DecodeError, match=r"id 7: it is not in the schema store; set .*registry"):
        split(alone, 7)


def test_kept_schemas_of_another_registry_are_not_mixed(tmp_path: Path) -> None:
    kept = SchemaDirectory(str(tmp_path))
    for text in (RECORD, '"string"'):
        with offline_registry(responses=plain_responses({1: text})) as server:
            assert split(opened(server.url, kept), 1).text == text
    alone = open_writer_schemas({}, kept, default_registry())
    assert alone is not None
    message_schemas.forget()
    with pytest.raises(DecodeError, match=r"several registries.*set schema\.registry\.url"):
        split(alone, 1)


def test_references_are_kept_too(tmp_path: Path) -> None:
    name = "postgres/avro_confluent_refs"
    kept = SchemaDirectory(str(tmp_path))
    values = [message for message in framed_messages(name) if message.value is not None][:50]
    with offline_registry(name) as server:
        schemas = opened(server.url, kept)
        first = [schemas.split(each.value or b"", (), "value") for each in values]
    message_schemas.forget()
    alone = open_writer_schemas({}, kept, default_registry())
    assert alone is not None
    again = [alone.split(each.value or b"", (), "value") for each in values]
    assert again == first


def test_a_cycle_of_references_is_an_error() -> None:
    body = '{"schema":"\\"R\\"","references":[{"name":"R","subject":"s","version":1}]}'
    version = '{"subject":"s","version":1,"id":1,' + body[1:]
    responses = {
        "/apis/ccompat/v7/schemas/ids/1": {"status": 200, "body": body},
        "/apis/ccompat/v7/subjects/s/versions/1": {"status": 200, "body": version},
    }
    with (
        offline_registry(responses=responses) as server,
        pytest.raises(DecodeError, match="references nest deeper"),
    ):
        split(opened(server.url, **FAST), 1)


def test_subjects_of_an_id() -> None:
    with offline_registry("postgres/avro_confluent") as server:
        values = {"schema.registry.url": server.url}
        registry = default_registry()
        found = open_registry(
            validate(values, registry_options(values, registry), owner="test"), registry
        )
        assert found is not None
        described = found.describe(17)
    assert list(described) == ["subjects"]
    assert any("-value, version" in each for each in described["subjects"])


def test_a_store_gets_schemas_that_the_process_knows_already(
    server: OfflineRegistry, tmp_path: Path
) -> None:
    first = split(opened(server.url), 1)
    one, other = (SchemaDirectory(str(tmp_path / name)) for name in ("one", "other"))
    assert split(opened(server.url, one), 1) == first
    assert len(kept_path(tmp_path / "one")) == 1
    # Without an address, each store has its own schemas.
    with offline_registry(responses=plain_responses({1: '"string"'})) as another:
        assert split(opened(another.url, other), 1).text == '"string"'
    for kept, text in ((one, RECORD), (other, '"string"')):
        alone = open_writer_schemas({}, kept, default_registry())
        assert alone is not None
        assert split(alone, 1).text == text


def test_tls_and_the_certificate_of_the_client(tmp_path: Path) -> None:
    made = make_certificates()
    files = {}
    for name in ("authority", "server", "server_key", "client", "client_key"):
        files[name] = tmp_path / name
        files[name].write_text(getattr(made, name))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["server"], files["server_key"])
    context.load_verify_locations(files["authority"])
    context.verify_mode = ssl.CERT_REQUIRED
    trust = {"ssl.ca.location": str(files["authority"])}
    login = {
        "ssl.certificate.location": str(files["client"]),
        "ssl.key.location": str(files["client_key"]),
    }
    with offline_registry(responses=plain_responses({1: RECORD}), tls=context) as server:
        assert server.url.startswith("https://")
        with pytest.raises(SourceError, match=r"no TLS.*set schema\.registry\.ssl\.ca\.location"):
            split(opened(server.url, **FAST, **login), 1)
        with pytest.raises(SourceError, match=r"schema registry https://.*"):
            split(opened(server.url, **FAST, **trust), 1)
        assert split(opened(server.url, **FAST, **trust, **login), 1).text == RECORD
    missing = {"ssl.ca.location": str(tmp_path / "missing.pem")}
    with pytest.raises(OptionError, match=r"schema\.registry\.ssl\.ca\.location is .*missing"):
        split(opened("https://127.0.0.1:1", **FAST, **missing), 1)


def test_bearer_tokens(server: OfflineRegistry) -> None:
    server.token = "t0ken"
    with pytest.raises(SourceError, match=r"HTTP 401\): check schema\.registry\.bearer"):
        split(opened(server.url, **FAST, **{"bearer.auth.token": "wrong"}), 1)
    assert split(opened(server.url, **{"bearer.auth.token": "t0ken"}), 1).text == RECORD


def test_oauth(server: OfflineRegistry) -> None:
    server.token = "t0ken"
    oauth = {
        "bearer.auth.issuer.endpoint.url": f"{server.address}/token",
        "bearer.auth.client.id": "client",
        "bearer.auth.client.secret": "s3cret",
        "bearer.auth.scope": "schemas",
    }
    assert split(opened(server.url, **FAST, **oauth), 1).text == RECORD
    message_schemas.forget()
    oauth["bearer.auth.client.secret"] = "hunter2"
    with pytest.raises(SourceError, match=r"no token from schema\.registry\.bearer") as caught:
        split(opened(server.url, **FAST, **oauth), 1)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"registry": "x", "schemas": [{}]}'])
def test_a_damaged_file_of_the_store_ends_the_read(
    server: OfflineRegistry, tmp_path: Path, data: bytes
) -> None:
    kept = SchemaDirectory(str(tmp_path))
    split(opened(server.url, kept), 1)
    (path,) = kept_path(tmp_path)
    path.write_bytes(data)
    message_schemas.forget()
    with pytest.raises(SourceError, match="schema id 1: the schema store has a damaged"):
        split(opened(server.url, kept), 1)
