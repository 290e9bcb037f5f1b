"""A schema registry without a network: it serves the answers that a real one gave.

Golden sets keep them in ``registry.json.gz``: status, type and body by path, as Apicurio Registry
3.3.3 answered by its own API and by Confluent's.
"""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs

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


def golden_registry(name: str) -> dict[str, Any]:
    """The kept registry of a golden set, such as ``postgres/avro_confluent``."""
    with gzip.open(GOLDEN / name / "registry.json.gz", "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


@attrs.define
class OfflineRegistry:
    """A running server, whose behaviour may change at any time.

    - ``responses``: the answers by path
    - ``status``: answer everything with this status instead
    - ``login``: user and password that requests must have
    - ``token``: the bearer token that requests must have; ``POST /token`` gives it to a client
    - ``seconds``: wait before each answer
    - ``requests``: the paths requested so far
    """

    responses: Mapping[str, Any]
    address: str = ""
    status: int | None = None
    login: str | None = None
    seconds: float = 0.0
    body: bytes | None = None
    token: str | None = None
    requests: list[str] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        """The value of ``schema.registry.url``."""
        return self.address + CCOMPAT

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.requests.append(path)
        time.sleep(self.seconds)
        if self.status is not None:
            return self.status, _error(self.status, "as the test wants")
        if self.body is not None:
            return 200, self.body
        if self.login is not None:
            wanted = "Basic " + base64.b64encode(self.login.encode()).decode()
            if authorization != wanted:
                return 401, _error(401, "Unauthorized")
        if self.token is not None and authorization != f"Bearer {self.token}":
            return 401, _error(401, "Unauthorized")
        plain = path.partition("?")[0]
        found = self.responses.get(path) or self.responses.get(plain)
        if found is not None:
            return found["status"], found["body"].encode()
        for start, body in _UNKNOWN.items():
            if path.startswith(start):
                return 404, json.dumps(body).encode()
        return 404, b"<html>Not Found</html>"


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
        known |= golden_registry(name)["responses"]
    registry = OfflineRegistry(known)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One packet an answer: two would wait for an acknowledgement.
        wbufsize = -1

        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            """The token of OAuth's client credentials."""
            self.rfile.read(int(self.headers["Content-Length"]))
            wanted = "Basic " + base64.b64encode(b"client:s3cret").decode()
            allowed = self.headers.get("Authorization") == wanted
            answer: dict[str, Any] = {"error": "invalid_client"}
            if allowed:
                answer = {"access_token": registry.token, "token_type": "Bearer", "expires_in": 600}
            body = json.dumps(answer).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    registry.address = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
