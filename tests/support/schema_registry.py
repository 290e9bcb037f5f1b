"""A schema registry without a network: it serves the answers that a real one gave.

Golden sets keep them in ``registry.json.gz``: status, type and body by path, as Apicurio Registry
3.3.3 answered by its own API and by Confluent's.
"""

from __future__ import annotations

import atexit
import base64
import gzip
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

from cdcfmt_toolkit import avro_output, message_schemas
from support.workspace import ROOT

GOLDEN = ROOT / "tests/golden"
CCOMPAT = "/apis/ccompat/v7"
_UNKNOWN = {
    CCOMPAT: {"error_code": 40403, "message": "Schema not found"},
    "/apis/registry": {
        "error_code": 404,
        "message": "No artifact with the id was found.",
        "name": "ArtifactNotFoundException",
    },
}


def golden_registry(name: str) -> Any:
    """The kept registry of a golden set, such as ``postgres/avro_confluent``."""
    with gzip.open(GOLDEN / name / "registry.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def _golden_responses(name: str) -> dict[str, Any]:
    found = golden_registry(name)
    if isinstance(found, list):
        # TiCDC's sets keep the schemas alone.
        return plain_responses({each["id"]: each["schema"] for each in found})
    responses: dict[str, Any] = found["responses"]
    return responses


@attrs.define
class OfflineRegistry:
    """A running server, whose behaviour may change at any time.

    - ``responses``: the answers by path
    - ``status``: answer everything with this status instead
    - ``away``: close each connection without an answer
    - ``answers``: the number of answers after which each has the status 503
    - ``login``: user and password that requests must have
    - ``token``: the bearer token that requests must have; ``POST /token`` gives it to a client
    - ``seconds``: wait before each answer
    - ``requests``: the paths requested so far
    - ``subjects``: the schemas registered under each subject, in order
    - ``registered``: all of them; an id is a place here, from 1
    - ``compatible``: whether a subject takes another schema
    """

    responses: Mapping[str, Any]
    address: str = ""
    status: int | None = None
    away: bool = False
    answers: int | None = None
    login: str | None = None
    seconds: float = 0.0
    body: bytes | None = None
    token: str | None = None
    requests: list[str] = attrs.field(factory=list)
    subjects: dict[str, list[str]] = attrs.field(factory=dict)
    registered: list[str] = attrs.field(factory=list)
    compatible: bool = True

    @property
    def url(self) -> str:
        """The value of ``schema.registry.url``."""
        return self.address + CCOMPAT

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.requests.append(path)
        time.sleep(self.seconds)
        if self.status is not None:
            return self.status, _error(self.status, "as the test wants")
        if self.answers is not None and len(self.requests) > self.answers:
            return 503, _error(503, "as the test wants")
        if self.body is not None:
            return 200, self.body
        if self.login is not None:
            wanted = "Basic " + base64.b64encode(self.login.encode()).decode()
            if authorization != wanted:
                return 401, _error(401, "Unauthorized")
        if self.token is not None and authorization != f"Bearer {self.token}":
            return 401, _error(401, "Unauthorized")
        plain = path.partition("?")[0]
        if (registered := self._registered(plain)) is not None:
            return registered
        found = self.responses.get(path) or self.responses.get(plain)
        if found is not None:
            return found["status"], found["body"].encode()
        for start, body in _UNKNOWN.items():
            if path.startswith(start):
                return 404, json.dumps(body).encode()
        return 404, b"<html>Not Found</html>"

    def _registered(self, path: str) -> tuple[int, bytes] | None:
        """The answer for an id or the latest version of what was registered here."""
        *_, kind, name, last = path.removesuffix("/versions/latest").split("/")
        if kind == "schemas" and name == "ids" and last.isdigit():
            texts = self.registered
            number = int(last)
            if number <= len(texts):
                return 200, json.dumps({"schema": texts[number - 1]}).encode()
        if name == "subjects" and path.endswith("/latest") and last in self.subjects:
            return 200, self._version(last, self.subjects[last][-1])
        return None

    def _version(self, subject: str, text: str) -> bytes:
        number = self.registered.index(text) + 1
        version = self.subjects[subject].index(text) + 1
        found = {"subject": subject, "id": number, "version": version, "schema": text}
        return json.dumps(found).encode()

    def register(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The answer of a registry to ``POST /subjects/NAME/versions`` and ``…/NAME``."""
        self.requests.append(path)
        if self.status is not None:
            return self.status, _error(self.status, "as the test wants")
        plain = unquote(path.partition("?")[0].removeprefix(CCOMPAT))
        subject = plain.removeprefix("/subjects/").removesuffix("/versions")
        text = json.loads(body)["schema"]
        known = self.subjects.get(subject, [])
        if text not in known:
            if not plain.endswith("/versions"):
                return 404, _error(40403, "Schema not found")
            if known and not self.compatible:
                return 409, _error(409, "Schema being registered is incompatible")
            self.subjects.setdefault(subject, []).append(text)
            if text not in self.registered:
                self.registered.append(text)
        return 200, self._version(subject, text)


def _error(code: int, text: str) -> bytes:
    return json.dumps({"error_code": code, "message": text}).encode()


@contextmanager
def offline_registry(
    *names: str,
    responses: Mapping[str, Any] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[OfflineRegistry]:
    """A server of the registries of golden sets, on a free port of this machine."""
    known: dict[str, Any] = dict(responses or {})
    for name in names:
        known |= _golden_responses(name)
    registry = OfflineRegistry(known)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One packet an answer: two would wait for an acknowledgement.
        wbufsize = -1

        def do_GET(self) -> None:
            if registry.away:
                self.close_connection = True
                return
            self._send(*registry.answer(self.path, self.headers.get("Authorization")))

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            """Registers a schema, or gives the token of OAuth's client credentials."""
            given = self.rfile.read(int(self.headers["Content-Length"]))
            if "/subjects/" in self.path:
                self._send(*registry.register(self.path, given))
                return
            wanted = "Basic " + base64.b64encode(b"client:s3cret").decode()
            allowed = self.headers.get("Authorization") == wanted
            answer: dict[str, Any] = {"error": "invalid_client"}
            if allowed:
                answer = {"access_token": registry.token, "token_type": "Bearer", "expires_in": 600}
            self._send(200 if allowed else 401, json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    registry.address = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    # Another server of this process may have had the same port.
    message_schemas.forget()
    avro_output.forget()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@cache
def _shared() -> OfflineRegistry:
    servers = ExitStack()
    atexit.register(servers.close)
    return servers.enter_context(offline_registry())


def with_registry(protocol: str, options: Mapping[str, Any], *, writes: bool) -> dict[str, Any]:
    """The options, for formats that need a registry with that of this process."""
    if protocol != "ticdc-avro" or "schema.registry.url" in options:
        return dict(options)
    given = {"schema.registry.url": _shared().url}
    if writes:
        for part in ("key", "value"):
            given[f"schema.registry.{part}.subject.name.strategy"] = "RecordNameStrategy"
    return {**given, **options}


def plain_responses(schemas: Mapping[int, str]) -> dict[str, Any]:
    """Answers of Confluent's API for schemas by id, each of one subject."""
    found = {}
    for number, text in schemas.items():
        path = f"{CCOMPAT}/schemas/ids/{number}"
        found[path] = {"status": 200, "body": json.dumps({"schema": text})}
        versions = [{"subject": f"s{number}-value", "version": 1}]
        found[f"{path}/versions"] = {"status": 200, "body": json.dumps(versions)}
    return found


def kept_path(folder: Path) -> list[Path]:
    """The writer schemas that a schema store keeps."""
    return sorted(folder.glob("_writer-schemas/*/*.schema"))
