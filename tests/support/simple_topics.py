"""Golden messages of Simple, laid out over the partitions of a topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from zlib import crc32

import attrs

from cdcfmt_core.events import Message
from support.golden_data import GoldenMessage, load_variant

PARTITIONS = 3


def is_row(golden: GoldenMessage) -> bool:
    return golden.kind == "row"


def golden(
    protocol: str = "simple-json", *, schemas_in_0_only: bool, late: int = 0
) -> list[Message]:
    """The golden stream over 3 partitions: a table's rows in one, schemas in one or all.

    What tells schemas comes ``late``, by so many messages of the stream.
    """
    every = load_variant(protocol, "default").messages
    order = sorted(range(len(every)), key=lambda n: n if is_row(every[n]) else n + late)
    return [
        attrs.evolve(every[n].message, partition=partition, offset=None)
        for n in order
        for partition in _partitions(every[n], schemas_in_0_only)
    ]


def _partitions(message: GoldenMessage, schemas_in_0_only: bool) -> Iterator[int]:
    if is_row(message):
        yield crc32(message.truth[0]["table"].encode()) % 2 + 1
    else:
        yield from [0] if schemas_in_0_only else range(PARTITIONS)


def starts(messages: list[Message], index: int) -> dict[str, int]:
    """The offsets of all partitions where so many messages were sent."""
    sent = Counter(message.partition for message in messages[:index])
    return {str(partition): sent[partition] for partition in range(PARTITIONS)}
