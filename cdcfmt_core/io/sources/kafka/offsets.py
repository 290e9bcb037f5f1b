"""Offsets as users ask for them, and ranges of offsets: plain data, without a broker.

Meaning and names are those of Spark's Kafka source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import attrs

from cdcfmt_core.errors import OptionError

EARLIEST, LATEST = -2, -1

TopicPartition: TypeAlias = tuple[str, int]
Offsets: TypeAlias = dict[TopicPartition, int]


@attrs.frozen
class OffsetRange:
    """The messages of one partition with ``start`` <= offset < ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many messages there are at most: offsets may be unused."""
        return self.end - self.start


@attrs.frozen
class OffsetRequest:
    """Where to begin or to end, as the option named ``option`` asks for.

    ``everywhere`` holds for all partitions, or ``each`` has a value for every one.  Values are
    offsets, :data:`EARLIEST` or :data:`LATEST`, or, with ``is_time``, milliseconds since the
    epoch.  ``missing_time`` is what becomes of a partition without a message that late.
    """

    option: str
    everywhere: int | None = None
    each: Mapping[TopicPartition, int] | None = None
    is_time: bool = False
    missing_time: Literal["error", "latest"] = "latest"

    def values_for(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The value of each partition.

        :raises OptionError: if partitions lack a value, or others have one.
        """
        wanted = set(partitions)
        if self.each is None:
            assert self.everywhere is not None
            return dict.fromkeys(sorted(wanted), self.everywhere)
        missing, unknown = wanted - self.each.keys(), self.each.keys() - wanted
        if missing or unknown:
            text = f"option {self.option} must name every partition of the topics"
            if missing:
                text += f"; it lacks {show_partitions(missing)}"
            if unknown:
                text += f"; not among them: {show_partitions(unknown)}"
            if not self.is_time:
                text += ". -2 is earliest, -1 is latest"
            raise OptionError(text)
        return {partition: self.each[partition] for partition in sorted(wanted)}


def show_partitions(partitions: Iterable[TopicPartition], limit: int = 10) -> str:
    """Partitions as ``topic-0, topic-1``."""
    names = [f"{topic}-{partition}" for topic, partition in sorted(partitions)]
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" * (len(names) > limit))


def offset_request(
    values: Mapping[str, Any], side: Literal["starting", "ending"]
) -> OffsetRequest | None:
    """What the options of one side ask for; None without any.

    As in Spark ``startingTimestamp`` goes before ``startingOffsetsByTimestamp``, and that
    before ``startingOffsets``.

    :raises OptionError: for text that says no offsets.
    """
    strategy: Literal["error", "latest"] = "latest"
    if side == "starting":
        strategy = values["startingOffsetsByTimestampStrategy"]
    time = values[f"{side}Timestamp"]
    if time is not None:
        return OffsetRequest(
            f"{side}Timestamp", everywhere=time, is_time=True, missing_time=strategy
        )
    option = f"{side}OffsetsByTimestamp"
    if values[option] is not None:
        each = _parse_each(option, values[option], 0)
        return OffsetRequest(option, each=each, is_time=True, missing_time=strategy)
    option = f"{side}Offsets"
    text = values[option]
    if text is None:
        return None
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return OffsetRequest(option, everywhere=EARLIEST if word == "earliest" else LATEST)
    return OffsetRequest(option, each=_parse_each(option, text, EARLIEST))


def parse_assign(text: str) -> set[TopicPartition]:
    """The partitions of the option ``assign``: ``{"topic": [0, 1]}``."""
    try:
        parsed = json.loads(text)
        found = {
            (str(topic), _integer(partition, 0))
            for topic, partitions in parsed.items()
            for partition in partitions
        }
    except (ValueError, AttributeError, TypeError):
        found = set()
    if not found:
        raise OptionError('option assign: not partitions such as {"topicA": [0, 1]}')
    return found


def _parse_each(option: str, text: str, minimum: int) -> dict[TopicPartition, int]:
    try:
        return {
            (str(topic), int(partition)): _integer(value, minimum)
            for topic, partitions in json.loads(text).items()
            for partition, value in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        words = "" if minimum == 0 else "earliest, latest or "
        raise OptionError(
            f"option {option}: {text[:200]!r} is not {words}JSON such as "
            '{"topicA": {"0": 23, "1": 45}}'
        ) from None


def _integer(value: Any, minimum: int) -> int:
    if type(value) is not int or value < minimum:
        raise ValueError(value)
    return value


def split_ranges(
    ranges: Iterable[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """Ranges that are not empty; large ones cut, each range staying whole otherwise.

    Cut into about ``min_partitions`` in total, in proportion to the sizes, and so that none
    has more than ``max_records`` offsets.
    """
    whole = [each for each in ranges if each.size > 0]
    parts = [max(1, math.ceil(each.size / max_records)) if max_records else 1 for each in whole]
    if min_partitions is not None and sum(parts) < min_partitions:
        total = sum(each.size for each in whole)
        # Those that are too small to be cut leave the others to share the rest.
        small = [each.size * min_partitions < 1.5 * total for each in whole]
        rest = sum(each.size for each, is_small in zip(whole, small, strict=True) if not is_small)
        wanted = max(min_partitions - sum(small), 1)
        parts = [
            part if is_small else max(part, round(each.size / rest * wanted), 1)
            for each, is_small, part in zip(whole, small, parts, strict=True)
        ]
    return [piece for each, part in zip(whole, parts, strict=True) for piece in _cut(each, part)]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(parts, whole.size)
    borders = [whole.start + whole.size * index // parts for index in range(parts + 1)]
    return [
        OffsetRange(whole.topic, whole.partition, start, end) for start, end in pairwise(borders)
    ]


def rate_limit(
    limit: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Offsets:
    """``ends`` moved back so that about ``limit`` offsets are left, shared in proportion.

    As in Spark, a partition with anything to read gets at least one.
    """
    sizes = {each: end - starts[each] for each, end in ends.items() if end > starts[each]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    # In whole numbers: offsets may be larger than a float holds exactly.
    return {
        each: starts[each] + max(limit * sizes[each] // total, 1) if each in sizes else end
        for each, end in ends.items()
    }
