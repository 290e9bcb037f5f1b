"""RabbitMQ streams as a source of offset ranges, with rstream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import unquote

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_rabbitmq.client import StreamClient
from cdcfmt_rabbitmq.options import SELECTING, StreamOptions
from cdcfmt_rabbitmq.reader import read_range
from cdcfmt_rabbitmq.settings import parse_settings
from cdcfmt_toolkit.topics.topic_options import split_address
from cdcfmt_toolkit.topics.topic_source import TopicSource


@attrs.frozen(slots=False)
class StreamSource(TopicSource[StreamOptions]):
    """The streams that options select; a :class:`cdcfmt_core.transport.Source`."""

    hasty: ClassVar = {"brokerTimeout": timedelta(seconds=3)}

    def open_client(self) -> StreamClient:
        return StreamClient(self.options)

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        return read_range(wanted, self.options, counts)


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> StreamSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    client = parse_settings(settings)
    return StreamSource(StreamOptions.parse(values, "RabbitMQ", SELECTING, settings=client))


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    The last part of the path is the stream or queue; any earlier part is the virtual host.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    secrets = "-o rabbitmq.username=… and -o rabbitmq.password=…"
    servers, path, options = split_address(url, "stream-or-queue", secrets=secrets)
    options["rabbitmq.hosts"] = servers
    host, mark, name = path.removeprefix("/").rpartition("/")
    if mark:
        options["rabbitmq.virtual.host"] = unquote(host)
    if name:
        options["subscribe"] = unquote(name)
    return options
