"""The kit's access to a broker, independent of the transport under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from cdcfmt_core.events import Message


class NotOfferedError(Exception):
    """The transport or its harness lacks something that a check needs; the check is skipped."""


@attrs.frozen
class Login:
    """Options with a login, and the secret in them."""

    options: Mapping[str, str]
    secret: str = attrs.field(repr=False)


class Harness:
    """Base class: access to a broker under test without using the transport.

    The first four methods are required; a check that needs another one is skipped if the subclass
    lacks it.  Each method returns when all clients can see its effect.

    ``allow_loss``: options by which a user accepts lost messages.
    """

    allow_loss: ClassVar[Mapping[str, str]] = {"failOnDataLoss": "false"}

    def create_topic(self, partitions: int) -> str:
        """Create an empty topic and return its new name."""
        raise NotImplementedError

    def append(self, topic: str, messages: Sequence[Message]) -> None:
        """Append messages to the partitions that they name, in this order."""
        raise NotImplementedError

    def reading(self, topic: str) -> Mapping[str, str]:
        """The options to read a topic, which may not exist, from its beginning."""
        raise NotImplementedError

    def writing(self, topic: str) -> Mapping[str, str]:
        """The options to write to a topic, which may not exist."""
        raise NotImplementedError

    def leave_gap(self, topic: str, partition: int) -> None:
        """Use up offsets of a partition that have no readable message."""
        raise NotOfferedError("the harness has no leave_gap")

    def delete_head(self, topic: str, partition: int) -> None:
        """Delete the first messages of a partition, but not all, like retention."""
        raise NotOfferedError("the harness has no delete_head")

    def add_partition(self, topic: str) -> None:
        """Add an empty partition after the last one."""
        raise NotOfferedError("the harness has no add_partition")

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        raise NotOfferedError("the harness has no delete_topic")

    def recreate_topic(self, topic: str) -> None:
        """Delete a topic, and create an empty one with the same name and one partition."""
        raise NotOfferedError("the harness has no recreate_topic")

    def restart(self) -> None:
        """Stop the broker, and start it again with the same topics."""
        raise NotOfferedError("the harness has no restart")

    def unreachable(self) -> Mapping[str, str]:
        """Options in addition to :meth:`reading` or :meth:`writing`, for which nothing answers."""
        raise NotOfferedError("the harness has no unreachable")

    def login(self) -> Login:
        """Options in addition to :meth:`reading` or :meth:`writing`, with a login."""
        raise NotOfferedError("the harness has no login")

    def wrong_login(self) -> Login:
        """Options like :meth:`login`, with a secret that the broker rejects."""
        raise NotOfferedError("the harness has no wrong_login")

    def addresses(self) -> tuple[str, str]:
        """Addresses for ``cdcfmt doctor``: the broker's, and one where nothing answers."""
        raise NotOfferedError("the harness has no addresses")
