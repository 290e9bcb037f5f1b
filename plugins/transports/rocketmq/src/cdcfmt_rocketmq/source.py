"""RocketMQ topics as a source of offset ranges, with the remoting protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_rocketmq.client import RocketClient
from cdcfmt_rocketmq.options import SELECTING, RocketOptions
from cdcfmt_rocketmq.progress import RocketProgress
from cdcfmt_rocketmq.reader import read_range
from cdcfmt_rocketmq.settings import NAME_SERVERS, ConnectionSettings
from cdcfmt_toolkit.topics.topic_options import split_address
from cdcfmt_toolkit.topics.topic_source import TopicSource


@attrs.frozen(slots=False)
class RocketSource(TopicSource[RocketOptions]):
    """The topics that options select; a :class:`cdcfmt_core.transport.Source`."""

    hasty: ClassVar = {"rocketmqConsumer.pollTimeoutMs": 3000}

    def open_client(self) -> RocketClient:
        return RocketClient(self.options)

    def open_progress(self) -> RocketProgress:
        return RocketProgress(self.open_client())

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        return read_range(wanted, self.options, counts)


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> RocketSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    client = ConnectionSettings.of(settings).require_name_servers()
    return RocketSource(RocketOptions.parse(values, "RocketMQ", SELECTING, settings=client))


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    :raises OptionError: for an address without a name server, or with a password in it.
    """
    secrets = "-o rocketmq.accessKey=… and -o rocketmq.secretKey=…"
    servers, topics, options = split_address(url, "topic", secrets=secrets)
    options[NAME_SERVERS] = servers
    if topics := topics.strip("/"):
        options["subscribe"] = topics
    return options
