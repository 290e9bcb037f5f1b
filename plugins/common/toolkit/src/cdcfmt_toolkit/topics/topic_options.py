"""The selection of topics and offsets to read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.offsets import TopicPartition
from cdcfmt_toolkit.topics.offset_request import OffsetRequest, offset_request, parse_assign


@attrs.frozen
class TopicSelection:
    """The partitions to read: those of named or matching topics, or ``assigned`` ones."""

    names: frozenset[str] = frozenset()
    pattern: str | None = None
    assigned: frozenset[TopicPartition] | None = None

    def selects(self, topic: str, partition: int) -> bool:
        """Whether a partition is selected."""
        if self.assigned is not None:
            return (topic, partition) in self.assigned
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.names

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern!r}"
        return ", ".join(sorted(self.names))


@attrs.frozen(kw_only=True)
class TopicOptions:
    """Validated options of a source; a transport adds its client's settings."""

    topics: TopicSelection
    starting: OffsetRequest | None
    ending: OffsetRequest | None
    values: Mapping[str, Any] = attrs.field(repr=False)

    @classmethod
    def parse(
        cls, values: Mapping[str, Any], title: str, selecting: Sequence[str], **more: Any
    ) -> Self:
        """Create from validated options of the transport ``title``.

        :param selecting: the options among ``subscribe``, ``subscribePattern`` and ``assign``
            that it has.
        :param more: the fields of a subclass.
        :raises OptionError: for incompatible or invalid options.
        """
        given = [name for name in selecting if values[name]]
        if len(given) != 1:
            *others, last = selecting
            raise OptionError(
                f"{title} needs one of the options {', '.join(others)} and {last}; "
                f"given: {' and '.join(given) or 'none'}"
            )
        least, most = values["minOffsetsPerTrigger"], values["maxOffsetsPerTrigger"]
        if least is not None and most is not None and least > most:
            raise OptionError(
                f"option minOffsetsPerTrigger: {least} is more than maxOffsetsPerTrigger ({most})"
            )
        return cls(
            topics=_selection(values),
            starting=offset_request(values, "starting"),
            ending=offset_request(values, "ending"),
            values=values,
            **more,
        )

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def _selection(values: Mapping[str, Any]) -> TopicSelection:
    if values["subscribe"]:
        return TopicSelection(frozenset(values["subscribe"]))
    if values["assign"]:
        partitions = parse_assign(values["assign"])
        return TopicSelection(
            frozenset(topic for topic, _ in partitions), assigned=frozenset(partitions)
        )
    pattern = values["subscribePattern"].strip()
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(
            f"option subscribePattern: {pattern!r} is not a regular expression: {error}"
        ) from None
    return TopicSelection(pattern=pattern)


def split_address(url: str, path: str, *, secrets: str) -> tuple[str, str, dict[str, str]]:
    """The servers and path of an address on the command line, and its options, unchanged.

    :param path: the form of the path, for errors.
    :param secrets: how to give user and password instead, for errors.
    :raises OptionError: for an address without a server, or with a password in it.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise OptionError(
            f"a {parts.scheme}:// address cannot hold user and password: give {secrets}"
        )
    if not parts.netloc:
        form = f"{parts.scheme}://host:port/{path}"
        raise OptionError(f"a {parts.scheme}:// address has the form {form}")
    return parts.netloc, parts.path, dict(parse_qsl(parts.query, keep_blank_values=True))


def port_problem(host: str, port: int) -> str | None:
    """The reason why a port accepts no connection, for a check; None if it does."""
    import socket

    try:
        socket.create_connection((host, port), timeout=5.0).close()
    except OSError as error:
        return str(error)
    return None
