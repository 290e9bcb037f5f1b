"""The first and last messages of files and topic partitions, without those between."""

from __future__ import annotations

import gzip
from pathlib import Path

from support.kafka_broker import Broker
from support.kafka_orders import orders

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.options import validate
from cdcfmt_files.sources import FileSplit, read_ends, spread
from cdcfmt_kafka.options import KAFKA_OPTIONS, parse_kafka_options
from cdcfmt_kafka.source import read_ends as read_ends_of_topics


def whole(path: Path) -> FileSplit:
    return FileSplit(str(path), 0, None, path.stat().st_size)


def values(files: list[Path], each: int, *, compressed_tails: bool = True) -> list[int]:
    found = read_ends(map(whole, files), each, compressed_tails=compressed_tails)
    return [int((message.value or b"").split()[0]) for message in found]  # type: ignore[union-attr]


def test_files(tmp_path: Path) -> None:
    """Long lines, so that the last ones begin before the last block."""
    paths = []
    for number, lines in enumerate((range(1000), range(3), range(2000, 2100))):
        text = b"".join(b"%d %s\n" % (line, b"x" * 70_000 * (number == 2)) for line in lines)
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_bytes(text)
    assert values(paths, 2) == [0, 1, 2098, 2099, 998, 999, 0, 1, 1, 2, 2000, 2001]
    assert values(paths[1:2], 5) == [0, 1, 2, 0, 1, 2]
    assert values([], 2) == []
    packed = tmp_path / "3.json.gz"
    packed.write_bytes(gzip.compress(b"\n".join(b"%d" % line for line in range(500))))
    assert values([paths[1], packed], 1) == [0, 2, 0, 499]
    assert values([packed, packed], 1, compressed_tails=False) == [0, 0]
    assert spread(range(1000), 3) == [0, 499, 999]


def test_topics(kafka: Broker) -> None:
    """Of many partitions at once, some of them short or empty, and one that is gone."""
    topic = kafka.create_topic("ends", 40)
    kafka.produce(topic, orders(0, 1200, 30))
    kafka.delete_records(topic, 1, 40)
    values = validate({"subscribe": topic}, KAFKA_OPTIONS, owner="the test")
    options = parse_kafka_options(values, {"bootstrap.servers": kafka.servers})
    ranges = [OffsetRange(topic, number, 2, 40) for number in range(30)]
    ranges += [OffsetRange(topic, number, 0, 0) for number in range(30, 40)]
    ranges += [OffsetRange(topic, 77, 0, 10), OffsetRange(topic, 0, 30, 33)]
    found: dict[int, list[int]] = {}
    first: list[int] = []
    for message in read_ends_of_topics(ranges[:-1], options, 3, seconds=20):
        assert isinstance(message, Message)
        assert message.partition is not None
        assert message.offset is not None
        first.append(message.partition)
        found.setdefault(message.partition, []).append(message.offset)
    assert first[:3] == [0, 0, 0]
    expected = {number: [2, 3, 4, 37, 38, 39] for number in range(30) if number != 1}
    assert {number: sorted(offsets) for number, offsets in found.items()} == expected
    short = read_ends_of_topics(ranges[-1:], options, 3, seconds=20)
    assert [message.offset for message in short] == [30, 31, 32]
