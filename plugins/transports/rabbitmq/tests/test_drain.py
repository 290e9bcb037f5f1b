"""Queues of a real broker, moved into a folder by ``cdcfmt drain``."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cloudcanal_messages import DML
from support.brokers import NOWHERE
from support.cli_tools import run, start
from support.golden_data import native_messages
from support.rabbitmq_broker import RabbitBroker
from support.rabbitmq_files import PASSWORD, USER

from cdcfmt_core.events import Message
from cdcfmt_files.sources import FileSplit, list_files, read_split

SHORT = ("--idle", "500ms")


def url(broker: RabbitBroker, queue: str) -> str:
    return f"rabbitmq://{broker.amqp_host}/{queue}"


def drained(folder: Path) -> list[Message]:
    return [
        message
        for file in list_files(str(folder))
        for message in read_split(FileSplit(file.path, 0, None, file.size))
        if isinstance(message, Message)
    ]


def numbered(start: int, end: int) -> list[tuple[bytes, dict[str, Any]]]:
    return [(b'{"n":%d}' % n, {"message_id": str(n)}) for n in range(start, end)]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_messages_of_producers_are_complete_and_in_order(
    rabbitmq: RabbitBroker, tmp_path: Path, kind: str
) -> None:
    queue = rabbitmq.create_queue(f"golden-{kind}", kind)
    canal = [m.value for m in native_messages("canal/canal_flat") if m.value is not None]
    # As Alibaba Canal sends it.
    text = {"content_type": "text/plain"}
    rabbitmq.fill_queue(queue, [(value, text) for value in canal])
    result = run("drain", url(rabbitmq, queue), "--into", tmp_path, *SHORT)
    assert result.exit_code == 0, result.stderr
    assert f"written: {len(canal)} messages" in result.stderr
    found = drained(tmp_path)
    assert [(m.key, m.value, m.headers, m.topic) for m in found] == [
        (None, value, (), queue) for value in canal
    ]
    assert rabbitmq.count(queue) == 0
    stats = run("stats", tmp_path)
    assert f"canal-json {len(canal)}" in " ".join(stats.stdout.split())


def test_cloudcanal_json_and_message_properties(rabbitmq: RabbitBroker, tmp_path: Path) -> None:
    queue = rabbitmq.create_queue("beside")
    body = json.dumps({**DML, "action": "INSERT", "before": []}).encode()
    headers = {
        "text": "größe", "binary": b"\x00\xff", "number": 7, "truth": True, "nothing": None,
        "x-death": [{"count": 1}], "row-key": b"k",
    }  # fmt: skip
    properties = {"headers": headers, "message_id": "id-1", "timestamp": 1_600_000_000}
    rabbitmq.fill_queue(queue, [(body, properties)])
    run("drain", f"{url(rabbitmq, queue)}?keyProperty=row-key", "--into", tmp_path, *SHORT)
    (found,) = drained(tmp_path)
    assert (found.key, found.value, found.timestamp) == (b"k", body, 1_600_000_000_000)
    assert dict(found.headers) == {
        "text": "größe".encode(), "binary": b"\x00\xff", "number": b"7", "truth": b"true",
        "nothing": None, "x-death": b'[{"count": 1}]', "message-id": b"id-1",
    }  # fmt: skip
    events = run("cat", tmp_path).stdout
    assert json.loads(events)["_source"]["protocol"] == "cloudcanal-json"


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_killed_drain(rabbitmq: RabbitBroker, tmp_path: Path, kind: str) -> None:
    queue = rabbitmq.create_queue(f"killed-{kind}", kind)
    dice = random.Random(kind)
    total = 0
    command = ("drain", url(rabbitmq, queue), "--into", tmp_path, "--roll-interval", "50ms")
    for _ in range(3):
        rabbitmq.fill_queue(queue, numbered(total, total + 5_000))
        total += 5_000
        process = start(*command, "--follow", "-o", "prefetch=500")
        while not list(tmp_path.glob("part-*")):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(dice.uniform(0, 0.4))
        process.kill()
        process.communicate()
    result = run(*command, "--idle", "2s")
    assert result.exit_code == 0, result.stderr
    # Each message exactly once, as messages have ids.
    found = Counter(json.loads(m.value or b"")["n"] for m in drained(tmp_path))
    assert found == Counter(range(total))
    assert rabbitmq.count(queue) == 0


def test_killed_broker(rabbitmq: RabbitBroker, tmp_path: Path) -> None:
    queue = rabbitmq.create_queue("broker-killed", "quorum")
    rabbitmq.fill_queue(queue, numbered(0, 20_000))
    options = ("--follow", "--roll-interval", "50ms", "-o", "prefetch=500")
    process = start("drain", url(rabbitmq, queue), "--into", tmp_path, *options)
    while len(list(tmp_path.glob("part-*"))) < 3:
        assert process.poll() is None
        time.sleep(0.02)
    rabbitmq.kill()
    rabbitmq.start()
    rabbitmq.fill_queue(queue, numbered(20_000, 20_100))
    deadline = time.monotonic() + 60
    while len(drained(tmp_path)) < 20_100:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.5)
    process.terminate()
    stderr = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 0, stderr
    assert "connecting again" in stderr
    found = Counter(json.loads(m.value or b"")["n"] for m in drained(tmp_path))
    assert found == Counter(range(20_100))


def test_signals_end_the_drain_after_a_commit(rabbitmq: RabbitBroker, tmp_path: Path) -> None:
    queue = rabbitmq.create_queue("stopped")
    rabbitmq.fill_queue(queue, numbered(0, 10))
    process = start("drain", url(rabbitmq, queue), "--into", tmp_path, "--follow")
    while rabbitmq.count(queue):
        time.sleep(0.05)
    time.sleep(0.2)
    assert not drained(tmp_path)
    process.terminate()
    stderr = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 0, stderr
    assert len(drained(tmp_path)) == 10
    assert rabbitmq.count(queue) == 0


def test_queue_deleted_while_draining(rabbitmq: RabbitBroker, tmp_path: Path) -> None:
    queue = rabbitmq.create_queue("deleted")
    rabbitmq.fill_queue(queue, numbered(0, 1))
    process = start("drain", url(rabbitmq, queue), "--into", tmp_path, "--idle", "30s")
    while rabbitmq.count(queue):
        time.sleep(0.05)
    with rabbitmq.amqp() as connection:
        connection.channel().queue_delete(queue)
    stderr = process.communicate(timeout=20)[1].decode()
    assert process.returncode == 3
    assert "queue deleted was deleted, or moved" in stderr


def test_undrainable_queues(rabbitmq: RabbitBroker, tmp_path: Path) -> None:
    queue = rabbitmq.create_queue("wrong")
    login = ("-o", f"rabbitmq.username={USER}", "-o", "rabbitmq.password=wr0ng-word")

    def problem(code: int, *arguments: str) -> str:
        result = run("drain", *arguments, "--into", tmp_path, *SHORT)
        assert result.exit_code == code, result.output
        return result.stderr

    text = problem(3, url(rabbitmq, queue), *login)
    assert "refuses the login" in text
    assert "rabbitmq.password" in text
    assert "wr0ng-word" not in text
    assert "there is no queue missing on RabbitMQ" in problem(3, url(rabbitmq, "missing"))
    rabbitmq.create_stream("kept")
    assert "this is a stream, which keeps" in problem(3, url(rabbitmq, "kept"))
    assert "rabbitmq.hosts" in problem(3, f"rabbitmq://{NOWHERE}/q")
    assert "name the queue" in problem(2, f"rabbitmq://{rabbitmq.amqp_host}")
    assert "Kafka has no queues" in problem(2, "kafka://a:1/t")
    assert "is not the address of a queue" in problem(2, "queue")
    assert "has no option 'nothing'" in problem(2, url(rabbitmq, queue), "-o", "nothing=1")
    with rabbitmq.amqp() as connection:
        channel = connection.channel()
        channel.basic_consume(queue, lambda *_: None)
        assert "exclusive use" in problem(3, url(rabbitmq, queue))


@pytest.mark.parametrize("external", [False, True])
def test_tls_and_logins(rabbitmq: RabbitBroker, tmp_path: Path, external: bool) -> None:
    queue = rabbitmq.create_queue(f"drained-tls-{external}")
    rabbitmq.fill_queue(queue, numbered(0, 3))
    login = {"rabbitmq.username": USER, "rabbitmq.password": PASSWORD}
    given = {**rabbitmq.tls, **(rabbitmq.client_certificate if external else login)}
    options = [part for name, value in given.items() for part in ("-o", f"{name}={value}")]
    address = f"rabbitmq://{rabbitmq.amqp_tls_host}/{queue}"
    result = run("drain", address, "--into", tmp_path, *SHORT, *options)
    assert result.exit_code == 0, result.stderr
    assert len(drained(tmp_path)) == 3
    result = run("drain", address, "--into", tmp_path, *SHORT, "-o", "rabbitmq.tls=true")
    assert result.exit_code == 3
    assert "its certificate is not trusted" in result.stderr
