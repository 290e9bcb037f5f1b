"""Requested offsets, with the names and meaning of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from cdcfmt_core.texts import parse_json
from cdcfmt_toolkit.topics.ranges import show_partitions

_SECONDS = range(100_000_000, 315_532_800_000)
"""Milliseconds until 1980.  As seconds, these are times after 1973.  Smaller numbers, such as 0,
are a common way to begin with the first message."""
_TOO_LATE = 253_402_300_800_000
"""The end of the year 9999 in milliseconds."""


@attrs.frozen
class OffsetRequest:
    """Where to begin or end, as requested by the option named ``option``.

    - ``everywhere``: the value for all partitions; or ``each``: a value for every partition.
    - ``is_time``: values are milliseconds since the epoch, else offsets, :data:`EARLIEST` or
      :data:`LATEST`.
    - ``missing_time``: what to do for a partition without a message at or after the time.
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


def offset_request(
    values: Mapping[str, Any], side: Literal["starting", "ending"]
) -> OffsetRequest | None:
    """The request of the options of one side, or None.

    As in Spark, ``startingTimestamp`` has precedence over ``startingOffsetsByTimestamp``, and
    that over ``startingOffsets``.

    :raises OptionError: for invalid offsets.
    """
    strategy: Literal["error", "latest"] = "latest"
    if side == "starting":
        strategy = values["startingOffsetsByTimestampStrategy"]
    option = f"{side}Timestamp"
    time = values[option]
    if time is not None:
        _check_times(option, [time])
        return OffsetRequest(option, everywhere=time, is_time=True, missing_time=strategy)
    option = f"{side}OffsetsByTimestamp"
    if values[option] is not None:
        each = parse_offsets(option, values[option], 0)
        _check_times(option, each.values())
        return OffsetRequest(option, each=each, is_time=True, missing_time=strategy)
    option = f"{side}Offsets"
    text = values[option]
    if text is None:
        return None
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return OffsetRequest(option, everywhere=EARLIEST if word == "earliest" else LATEST)
    return OffsetRequest(option, each=parse_offsets(option, text, EARLIEST))


def parse_assign(text: str) -> set[TopicPartition]:
    """The partitions of the option ``assign``: ``{"topic": [0, 1]}``."""
    try:
        parsed = parse_json(text)
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


def parse_offsets(option: str, text: str, minimum: int) -> dict[TopicPartition, int]:
    """The offsets of an option, or times: ``{"topic": {"0": 23}}``."""
    try:
        return {
            (str(topic), int(partition)): _integer(value, minimum)
            for topic, partitions in parse_json(text).items()
            for partition, value in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        words = "" if minimum == 0 else "earliest, latest or "
        raise OptionError(
            f"option {option}: {text[:200]!r} is not {words}JSON such as "
            '{"topicA": {"0": 23, "1": 45}}'
        ) from None


def _check_times(option: str, times: Iterable[int]) -> None:
    """Reject another unit, with which all messages or none would be read."""
    for time in times:
        if time in _SECONDS or time >= _TOO_LATE:
            unit = "seconds" if time in _SECONDS else "microseconds or nanoseconds"
            raise OptionError(
                f"option {option}: {time} is outside 1980–9999 in milliseconds since the epoch; "
                f"convert it to milliseconds if it is in {unit}"
            )


def _integer(value: Any, minimum: int) -> int:
    if type(value) is not int or value < minimum:
        raise ValueError(value)
    return value
