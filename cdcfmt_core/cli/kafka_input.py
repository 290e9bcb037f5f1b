"""``kafka://host:port,…/topic,…?option=…``: topics, through the core's Kafka source."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources.kafka import (
    CLIENT_PREFIX,
    KAFKA_OPTIONS,
    KafkaClient,
    OffsetRange,
    StreamProgress,
    parse_kafka_options,
    plan_ranges,
    read_ends,
    read_range,
)
from cdcfmt_core.io.sources.kafka.progress import INITIAL, StreamOffset
from cdcfmt_core.options import validate

_POLL_SECONDS = 0.5


def kafka_option_names() -> list[str]:
    """Every option of the source but the client's own, which begin with ``kafka.``."""
    return [option.name for option in KAFKA_OPTIONS if "*" not in option.name]


class KafkaInput:
    """The topics of one cluster, partition by partition; with ``follow`` for ever.

    ``total`` and ``advance`` count offsets, not bytes.
    """

    unit = "messages"

    def __init__(self, url: str, options: Mapping[str, str], *, follow: bool) -> None:
        given = _of_url(url) | {name.strip(): value for name, value in options.items()}
        client = {
            name.removeprefix(CLIENT_PREFIX): value
            for name, value in given.items()
            if name.startswith(CLIENT_PREFIX)
        }
        values = {n: v for n, v in given.items() if not n.startswith(CLIENT_PREFIX)}
        self._given = validate(values, KAFKA_OPTIONS, owner="a kafka:// input")
        self._settings = client
        self._follow = follow
        self._open()

    @property
    def again(self) -> bool:
        return not self._follow

    @property
    def live(self) -> bool:
        return self._follow

    @property
    def total(self) -> int | None:
        return None if self._follow else sum(each.size for each in self._planned())

    def messages(self, advance: Callable[[int], object]) -> Iterator[Message]:
        ranges = self._new_ranges() if self._follow else self._planned()
        for each in ranges:
            done = each.start
            for message in read_range(each, self._options):
                yield message
                assert message.offset is not None
                advance(message.offset + 1 - done)
                done = message.offset + 1
            advance(each.end - done)

    blocks = messages

    def heads(self, count: int) -> Iterator[Message]:
        for each in self._planned():
            yield from islice(read_range(each, self._options), count)

    def ends(self) -> Iterator[Message]:
        return read_ends(self._planned(), self._options)

    def begin_at(self, partition: int, offset: int) -> None:
        """Read this partition alone, from this offset on."""
        topics = self._given["subscribe"]
        if len(topics) == 1:
            self._given["subscribe"] = ()
            self._given["assign"] = json.dumps({topics[0]: [partition]})
            self._given["startingOffsets"] = json.dumps({topics[0]: {str(partition): offset}})
            self._open()

    def _open(self) -> None:
        self._options = parse_kafka_options(self._given, self._settings)
        if self._follow:
            self._options.check_stream()
        else:
            self._options.check_batch()
        self._ranges: list[OffsetRange] | None = None

    def _planned(self) -> list[OffsetRange]:
        # Once, so that a second reading sees the same messages.
        if self._ranges is None:
            self._ranges = plan_ranges(self._options, KafkaClient(self._options))
        return self._ranges

    def _new_ranges(self) -> Iterator[OffsetRange]:
        progress = StreamProgress(self._options, KafkaClient(self._options))
        at: dict[str, Any] = dict(INITIAL)
        while True:
            moved = progress.advance(at, None, None)
            if moved == at:
                time.sleep(_POLL_SECONDS)
                continue
            at = moved
            yield from (each for each in StreamOffset.of_json(at).ranges() if each.size > 0)


def _of_url(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    topics = parts.path.strip("/")
    if "@" in parts.netloc:
        raise OptionError(
            "a kafka:// input takes no user and password in its address: give "
            "-o kafka.sasl.username=… and -o kafka.sasl.password=…"
        )
    if not parts.netloc:
        raise OptionError("a kafka:// input is written kafka://host:port/topic")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    options[f"{CLIENT_PREFIX}bootstrap.servers"] = parts.netloc
    if topics:
        options["subscribe"] = topics
    return options
