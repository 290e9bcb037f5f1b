"""What every input of a command offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from cdcfmt_core.events import Message
from cdcfmt_core.io.sources import BadLine, Lines


class Input(ABC):
    """Messages of one input."""

    again = True
    """Whether the messages can be read a second time."""
    live = False
    """Whether messages arrive one by one."""
    unit = "bytes"
    """``bytes`` or ``messages``, for ``total``."""

    @property
    def total(self) -> int | None:
        """The sum that :meth:`messages` will report through ``advance``; None if unknown."""
        return None

    @abstractmethod
    def messages(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine]:
        """The messages in order."""

    def blocks(self, advance: Callable[[int], object]) -> Iterator[Message | BadLine | Lines]:
        """Like :meth:`messages`, but may yield unsplit blocks of lines."""
        return self.messages(advance)

    @abstractmethod
    def heads(self, count: int) -> Iterator[Message | BadLine]:
        """The first ``count`` messages of every file or partition."""

    def ends(self) -> Iterator[Message | BadLine]:
        """The first and last messages of every file or partition; none if ``again`` is false."""
        return iter(())

    def begin_at(self, partition: int, offset: int) -> None:  # noqa: B027
        """Skip messages before this offset, if possible without reading them."""
