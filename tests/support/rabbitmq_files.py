"""RabbitMQ's packages, and the settings of a broker of the tests."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from support import debian_packages
from support.certificates import make_certificates
from support.maven import UnavailableError

USER, PASSWORD = "reader", "s3cr3t-word"
CLIENT = "client"
"""The user of the certificate."""
UNREADABLE = "hidden-1"
"""A stream without read permission."""

_ERLANG = (
    "base", "asn1", "crypto", "public-key", "mnesia", "runtime-tools", "ssl", "eldap", "ftp",
    "tftp", "inets", "snmp", "os-mon", "parsetools", "syntax-tools", "tools", "xmerl",
)  # fmt: skip
_PACKAGES = ("rabbitmq-server", *(f"erlang-{name}" for name in _ERLANG))

_SETTINGS = """
listeners.tcp.local = 127.0.0.1:{amqp}
listeners.ssl.local = 127.0.0.1:{amqps}
stream.listeners.tcp.1 = 127.0.0.1:{stream}
stream.listeners.ssl.1 = 127.0.0.1:{streams}
stream.advertised_host = 127.0.0.1
stream.advertised_port = {stream}
stream.advertised_tls_host = 127.0.0.1
stream.advertised_tls_port = {streams}
ssl_options.cacertfile = {folder}/ca.pem
ssl_options.certfile = {folder}/server.pem
ssl_options.keyfile = {folder}/server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = EXTERNAL
load_definitions = {folder}/definitions.json
log.console = true
log.file = false
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
"""


def unpacked() -> Path:
    """The folder with RabbitMQ and Erlang, from the cache or by apt-get.

    :raises UnavailableError: where there is no apt-get, or it finds no packages.
    """
    return debian_packages.unpacked("rabbitmq", _PACKAGES, _move_erlang)


def _move_erlang(root: Path, folder: Path) -> None:
    script = root / "usr/lib/erlang/bin/erl"
    text = script.read_text()
    at = "ROOTDIR=/usr/lib/erlang"
    if at not in text:
        raise UnavailableError(f"the script erl has no line {at}")
    script.write_text(text.replace(at, f"ROOTDIR={folder}/usr/lib/erlang"))


def write_settings(folder: Path, ports: Sequence[int]) -> None:
    """A new broker's settings; the first four ports are those of streams and of queues."""
    (folder / "home").mkdir()
    certificates = make_certificates(CLIENT)
    for name, text in {
        "ca.pem": certificates.authority,
        "server.pem": certificates.server,
        "server.key": certificates.server_key,
        "client.pem": certificates.client,
        "client.key": certificates.client_key,
        "plugins": "[rabbitmq_stream, rabbitmq_auth_mechanism_ssl].\n",
        "definitions.json": json.dumps(_definitions()),
        "rabbitmq.conf": _SETTINGS.format(
            folder=folder,
            **dict(zip(("stream", "streams", "amqp", "amqps"), ports, strict=False)),
        ),
    }.items():
        (folder / name).write_text(text)


def _definitions() -> dict[str, object]:
    users = {"guest": "guest", USER: PASSWORD, CLIENT: None}
    rights = {"configure": ".*", "write": ".*", "read": f"^(?!{UNREADABLE}$)"}
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {
                "name": name,
                "password_hash": "" if password is None else _hashed(password),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["administrator"],
            }
            for name, password in users.items()
        ],
        "permissions": [{"user": name, "vhost": "/", **rights} for name in users],
    }


def _hashed(password: str) -> str:
    salt = os.urandom(4)
    digest = hashlib.sha256(salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()
