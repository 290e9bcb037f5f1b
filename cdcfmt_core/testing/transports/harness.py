"""What the kit does to a broker, beside the transport that it tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from cdcfmt_core.events import Message


class NotOfferedError(Exception):
    """The transport, or its harness, cannot do what a check needs; the check is skipped."""


@attrs.frozen
class Login:
    """Options of a user: with a login, and the secret in it."""

    options: Mapping[str, str]
    secret: str = attrs.field(repr=False)


class Harness:
    """A broker under test, by means other than the transport's own.

    The first four methods are needed; a check that needs another one, which a subclass leaves
    out, is skipped.  Every method returns once all clients see what it did.

    ``allow_loss`` are the options with which a user accepts that messages are gone.
    """

    allow_loss: ClassVar[Mapping[str, str]] = {"failOnDataLoss": "false"}

    def create_topic(self, partitions: int) -> str:
        """Make an empty topic; its name, which is new."""
        raise NotImplementedError

    def append(self, topic: str, messages: Sequence[Message]) -> None:
        """Put messages behind the others of the partitions that they name, in this order."""
        raise NotImplementedError

    def reading(self, topic: str) -> Mapping[str, str]:
        """The options of a user who reads a topic, there or not, from its beginning."""
        raise NotImplementedError

    def writing(self, topic: str) -> Mapping[str, str]:
        """The options of a user who writes to a topic, there or not."""
        raise NotImplementedError

    def leave_gap(self, topic: str, partition: int) -> None:
        """Use up offsets of a partition that no reader gets a message of."""
        raise NotOfferedError("the harness has no leave_gap")

    def delete_head(self, topic: str, partition: int) -> None:
        """Delete the first messages of a partition, but not all, as retention does."""
        raise NotOfferedError("the harness has no delete_head")

    def add_partition(self, topic: str) -> None:
        """Add an empty partition, the last one."""
        raise NotOfferedError("the harness has no add_partition")

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        raise NotOfferedError("the harness has no delete_topic")

    def remake_topic(self, topic: str) -> None:
        """Delete a topic, and make one of the same name with one partition, which is empty."""
        raise NotOfferedError("the harness has no remake_topic")

    def restart(self) -> None:
        """Stop the broker, and start it with the same topics."""
        raise NotOfferedError("the harness has no restart")

    def unreachable(self) -> Mapping[str, str]:
        """Options, beside those of :meth:`reading` or :meth:`writing`, by which nothing answers."""
        raise NotOfferedError("the harness has no unreachable")

    def login(self) -> Login:
        """Options, beside :meth:`reading`'s or :meth:`writing`'s, of a user with a secret."""
        raise NotOfferedError("the harness has no login")

    def wrong_login(self) -> Login:
        """The same with a secret that the broker refuses."""
        raise NotOfferedError("the harness has no wrong_login")

    def addresses(self) -> tuple[str, str]:
        """What ``cdcfmt doctor`` is given: the broker's address, and one where nothing answers."""
        raise NotOfferedError("the harness has no addresses")
