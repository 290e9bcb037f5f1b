"""The command line over topics of a real broker."""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from support.cli_tools import run, run_json, run_lines, start
from support.golden_data import load_variant
from support.kafka_orders import order, orders

from cdcfmt_cli.commands import cat
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_kafka.source import KafkaSource

if TYPE_CHECKING:
    from support.kafka_broker import Broker

COUNT = 90


@pytest.fixture(scope="module")
def topic(kafka: Broker) -> Iterator[str]:
    name = kafka.create_topic(f"cli-{uuid.uuid4().hex[:8]}", 3)
    kafka.produce(name, orders(0, COUNT, partitions=3))
    yield name
    kafka.delete_topic(name)


@pytest.fixture
def url(kafka: Broker, topic: str) -> str:
    return f"kafka://{kafka.servers}/{topic}"


def ids(events: list[Any]) -> list[int]:
    return [event["after"]["id"] for event in events]


def test_every_message_once_in_the_order_of_its_partition(url: str, topic: str) -> None:
    events = run_lines("cat", url)
    assert sorted(ids(events)) == list(range(COUNT))
    for partition in range(3):
        mine = [e for e in events if e["_source"]["partition"] == partition]
        assert [e["_source"]["offset"] for e in mine] == list(range(COUNT // 3))
        assert {e["_source"]["topic"] for e in mine} == {topic}


def test_options_in_the_address_and_beside_it(url: str, topic: str) -> None:
    from_10 = json.dumps({topic: {str(partition): 10 for partition in range(3)}})
    for events in (
        run_lines("cat", url, "-o", f"startingOffsets={from_10}"),
        run_lines("cat", url, "-o", f"starting-offsets={from_10}"),
        run_lines("cat", f"{url}?startingOffsets={from_10}"),
    ):
        assert sorted(ids(events)) == list(range(30, COUNT))
    result = run("cat", url, "-o", "startingOffset=earliest")
    assert (result.exit_code, "did you mean startingOffsets?" in result.stderr) == (2, True)


def test_counts_and_formats(url: str, topic: str) -> None:
    assert run_json("stats", url, "--json")["tables"] == {"shop.orders": {"insert": COUNT}}
    assert run_json("sniff", url, "--sample", 5, "--json")["canal-json"]["messages"] == 15
    assert "id INT" in run("schema", url, "--table", "shop.orders", "--as", "spark").stdout


def test_one_message(url: str, topic: str) -> None:
    ((explanation),) = run_lines("inspect", url, "--partition", 2, "--offset", 7, "--json")
    position = explanation["position"]
    assert (position["topic"], position["partition"], position["offset"]) == (topic, 2, 7)
    assert explanation["events"][0]["after"]["id"] == 23


def test_corrupt_messages(kafka: Broker) -> None:
    name = kafka.create_topic(f"cli-{uuid.uuid4().hex[:8]}")
    kafka.produce(name, [order(1), Message(b"k", b'{"isDdl":fal', partition=0), order(2)])
    result = run("validate", f"kafka://{kafka.servers}/{name}", "--json")
    assert result.exit_code == 1
    problem, reason = [json.loads(line) for line in result.stdout.splitlines()]
    assert (reason["found"], reason["count"]) == ("reason", 1)
    assert (problem["topic"], problem["partition"], problem["offset"]) == (name, 0, 1)
    kafka.delete_topic(name)


def test_follow(kafka: Broker) -> None:
    name = kafka.create_topic(f"cli-{uuid.uuid4().hex[:8]}")
    kafka.produce(name, orders(0, 3))
    process = start("cat", f"kafka://{kafka.servers}/{name}?startingOffsets=earliest", "--follow")
    assert process.stdout is not None
    assert ids([json.loads(process.stdout.readline()) for _ in range(3)]) == [0, 1, 2]
    kafka.produce(name, orders(3, 5))
    assert ids([json.loads(process.stdout.readline()) for _ in range(2)]) == [3, 4]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    kafka.delete_topic(name)


def test_tail_takes_the_newest_of_all_partitions(kafka: Broker) -> None:
    name = kafka.create_topic(f"cli-{uuid.uuid4().hex[:8]}", 3)
    start_ms = 1_700_000_000_000
    kafka.produce(name, (order(n, n % 3, start_ms + 1000 * n) for n in range(30)))
    assert ids(run_lines("cat", f"kafka://{kafka.servers}/{name}", "--tail", 4)) == [26, 27, 28, 29]
    kafka.delete_topic(name)


def test_errors_of_topics(kafka: Broker, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("first_contact_seconds", "unknown_topic_seconds"):
        monkeypatch.setattr(f"cdcfmt_kafka.client.KafkaClient.{patience}", 1.0)
    for arguments, exit_code, text in (
        (["cat", f"kafka://{kafka.servers}/nothing-like-it"], 3, "does not exist"),
        (["cat", "kafka://127.0.0.1:1/t"], 3, "no Kafka broker answers at 127.0.0.1:1"),
        (["cat", "kafka:///t"], 2, "kafka://host:port/topic"),
        (
            ["cat", f"kafka://{kafka.servers}"],
            2,
            f"names no topic; with one: kafka://{kafka.servers}/orders",
        ),
        (["cat", url, "x.jsonl"], 2, "read alone"),
        (["cat", url, "--follow", "-f", "table"], 2, "use -f json"),
    ):
        result = run(*arguments)
        assert (result.exit_code, text in result.stderr) == (exit_code, True), result.stderr


def test_secrets_are_not_shown(kafka: Broker, url: str) -> None:
    texts = []
    for address in (
        url.replace("kafka://", "kafka://me:s3cret@"),
        f"{url}?kafka.sasl.password=s3cret",
        f"{url}?kafka.sasl.mechanism=s3cret",
    ):
        result = run("sniff", address)
        texts.append(result.stdout + result.stderr)
        result = run("validate", address)
        texts.append(result.stdout + result.stderr)
    assert all("s3cret" not in text for text in texts[:4])
    assert "kafka.sasl.username" in texts[0]


def test_the_doctor(kafka: Broker) -> None:
    found = run_json(
        "doctor", "--json", "--kafka", kafka.servers, exit_code=run("doctor").exit_code
    )
    texts = [item["text"] for item in found if item["subject"] == f"Kafka {kafka.servers}"]
    assert texts[0] == "the port is open"
    assert texts[1].startswith("1 brokers, ")
    assert texts[2] == f"broker 1 at {kafka.servers}"


GOLDEN = [("canal-json", "tidb-extension"), ("simple-json", "default"), ("debezium", "default")]


def tails_and_reads(
    monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[tuple[int, str], tuple[int, str], int, int]:
    """Results of ``cat`` that reads from the ends, and of all; the numbers of offsets read."""
    read: list[int] = []
    whole = KafkaSource.read

    def counted(self: KafkaSource, wanted: OffsetRange, *more: Any) -> Iterator[Message]:
        read.append(wanted.size)
        return whole(self, wanted, *more)

    monkeypatch.setattr(KafkaSource, "read", counted)
    by_ends = run("cat", *arguments)
    of_ends, read[:] = sum(read), []
    monkeypatch.setattr(cat._Rows, "read_ends", lambda *_: False)
    of_all = run("cat", *arguments)
    monkeypatch.undo()
    ends, every = ((each.exit_code, each.stdout) for each in (by_ends, of_all))
    return ends, every, of_ends, sum(read)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tail", 5],
        ["--tail", 150, "--table", "shop.orders"],
        ["--tail", 3, "--table", "shop.orders", "-f", "csv"],
        ["--tail", 3, "-f", "table"],
        ["--tail", 2, "--where", "id < 1000", "--table", "shop.orders"],
        ["--tail", 7, "--kind", "corrupt"],
        ["--tail", 2, "--columns", "name", "--key", "1500"],
        ["--tail", 2, "--table", "shop.orders", "--columns", "nam"],
        ["--tail", 2, "--include-tables", "shop.*,shop.nothing"],
        ["--tail", 2, "--where", "nam = 'x'"],
        ["--tail", 2, "--key-columns", "nam"],
    ],
    ids=str,
)
def test_tail_equals_the_end_of_everything(
    long_topic: str, arguments: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tails_and_reads(monkeypatch, long_topic, *arguments, "--no-scan-schemas")
    by_ends, of_all, few, many = found
    assert by_ends == of_all
    # A rare row, and a name that no message has, are looked for everywhere.
    rare = [each for each in arguments if isinstance(each, str)]
    is_rare = any(word in " ".join(rare) for word in ("1000", "corrupt", "nam", "nothing"))
    assert is_rare or few < many / 2


@pytest.fixture(scope="module")
def long_topic(kafka: Broker) -> Iterator[str]:
    """Three partitions with bad messages, deletes without value, and times across partitions."""
    name = kafka.create_topic(f"cli-{uuid.uuid4().hex[:8]}", 3)
    start_ms = 1_700_000_000_000
    messages = [order(n, n % 3, start_ms + 997 * n % 100_000) for n in range(3000)]
    for n in range(0, 3000, 500):
        messages.insert(n, Message(b"k", b'{"isDdl":fal', partition=n % 3, timestamp=start_ms))
    tombstones = [Message(b"%d" % n, None, partition=1, timestamp=start_ms) for n in range(400)]
    kafka.produce(name, [*messages, *tombstones, *orders(3000, 3010, partitions=3)])
    yield f"kafka://{kafka.servers}/{name}"
    kafka.delete_topic(name)


@pytest.mark.parametrize(("protocol", "variant"), GOLDEN)
def test_types_of_a_tail_are_those_of_the_whole_topic(
    kafka: Broker, protocol: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements and schema messages before the rows determine their types."""
    name = kafka.create_topic(f"cli-{uuid.uuid4().hex[:8]}")
    messages = [golden.message for golden in load_variant(protocol, variant).messages]
    kafka.produce(name, (attrs.evolve(each, partition=0) for each in messages))
    assert len(messages) > 300
    for more in ([], ["--table", "golden.txn_a"], ["--kind", "row", "--no-scan-schemas"]):
        for tail in (1, 40):
            arguments = f"kafka://{kafka.servers}/{name}", "--tail", tail, *more
            by_ends, of_all, *_ = tails_and_reads(monkeypatch, *arguments)
            assert (by_ends[0], by_ends == of_all) == (0, True)
    kafka.delete_topic(name)
