"""The compiled kernel: messages to Arrow record batches, and back."""

from collections.abc import Callable, Sequence
from typing import Any

def holds_any(lines: bytes, marks: Sequence[bytes], names: Sequence[bytes]) -> bool:
    """Whether any of ``marks`` stands in the lines, or in the value of one that is a whole message.

    The first member of such an object has one of ``names``.  True where that cannot be read.
    """

def variant_members(batch: Any, column: str, integers: Sequence[str], texts: Sequence[str]) -> Rows:
    """Members of the variants in a column of a record batch, as columns with their names.

    NULL where the variant is no object, lacks the member, or has one of another type.

    :raises ValueError: for a variant that cannot be read.
    """

class Rows:
    """Rows of a batch, for ``pyarrow.record_batch``."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

class Kernel:
    """Reads the messages of one format into batches.

    ``settings`` are JSON (``pyspark_cdcfmt/kernel/settings.py``).
    """

    def __init__(self, settings: str) -> None: ...
    def read(
        self,
        values: list[bytes | None],
        keys: list[bytes | None],
        offsets: list[int | None],
        start: int,
    ) -> int:
        """Reads messages from ``start`` on; returns the number of the first one not read.

        ``keys`` may be empty where no layout is about them.
        """
    def read_batch(self, batch: Any, start: int) -> int:
        """Like :meth:`read`, of a ``pyarrow`` batch with the columns value, key and offset.

        :raises ValueError: if it lacks one, or one has another type.
        """
    def read_lines(self, data: bytes, offset: int, at: int, are_whole: bool) -> int:
        """Reads lines from the byte ``at`` on; returns the place of the first one not read.

        ``offset`` is that of ``data`` in its file.  The lines are values, or whole messages.
        """
    def take_origins(
        self,
    ) -> tuple[
        list[str | None],
        list[int | None],
        list[int | None],
        list[list[tuple[str, bytes | None]]],
    ]:
        """Topics, partitions, timestamps (ms), headers of what ``read_lines`` has just read."""
    @property
    def stop(self) -> tuple[str, int]:
        """Why the last message was not read: full, unknown or a reason, and at which byte.

        Empty text if it was read; of a message of events that is unknown the number of the event.
        """
    def event(self, value: bytes, key: bytes | None, number: int) -> tuple[bytes, bytes]:
        """Value and key of an event in a message of several; messages below may be such events.

        :raises ValueError: if there is no such event.
        """
    def names(self, value: bytes, key: bytes | None) -> tuple[str, str, str]:
        """Database, schema and table of a message.

        :raises ValueError: if it has no layout.
        """
    def layout(self, value: bytes, key: bytes | None) -> int:
        """The number of a message's layout.

        :raises ValueError: if it has none.
        """
    @property
    def size(self) -> int:
        """Bytes of the values that were read into the batch."""
    def skip(self, value: bytes, key: bytes | None, all: bool) -> None:
        """Lets the filters skip messages of this one's table that have its schema; or all of them.

        :raises ValueError: if it has no layout.
        """
    def add_plan(self, value: bytes, key: bytes | None, plan: str) -> None:
        """Adds the plan of messages with the schema key of this one.

        :raises ValueError: if the message has none.
        """
    def add_zone(self, name: str, zone: str) -> None:
        """Adds the time zone of a name that values bring; its offsets are JSON."""
    def missing_zone(self, value: bytes, key: bytes | None) -> str | None:
        """The name of a time zone that a message's values have and that was not added."""
    def envelope(self, value: bytes) -> str:
        """Text and integers of an Avro message's envelope, as JSON.

        :raises ValueError: if it has no layout.
        """
    def clear_plans(self) -> None: ...
    def pass_over(self) -> int:
        """Counts a message that the reference reads; returns its number in the batch."""
    @property
    def messages(self) -> int:
        """Messages of the batch."""
    @property
    def rows(self) -> int:
        """Rows of the batch."""
    @property
    def skipped(self) -> int:
        """Messages that the filters do not want, of all batches."""
    def take_counts(self) -> list[tuple[str, int]]:
        """How many values were counted under which notes, since the last call."""
    def finish(self) -> Rows:
        """The rows of the batch, which is empty afterwards."""

class Writer:
    """Writes the rows of one task as messages, in order up to the first that it refuses.

    ``settings`` are JSON (``pyspark_cdcfmt/write/columnar.py``); ``compress`` is for values.
    """

    def __init__(self, settings: str, compress: Callable[[bytes], bytes] | None) -> None: ...
    def open(self, batch: Any) -> bool:
        """Takes a record batch of ``pyarrow``; false where the reference writes all of it."""
    def add_table(self, table: str, row: int | None) -> None:
        """Tells how the rows of a table are written: of the table of this row, if they are events.

        ``table`` is JSON.
        """
    def clear_tables(self) -> None: ...
    def write(self, start: int, now: int) -> int:
        """Writes rows from ``start`` on; returns the number of the first one not written.

        ``now`` is in microseconds.
        """
    @property
    def stop(self) -> str:
        """Why no more was written: "", "full", "unknown" (the row's table), "not allowed" (the
        row), "no characters" (``set_printable`` was not called), or a reason."""
    @property
    def wanted(self) -> tuple[int, int, int]:
        """Of the row that is not allowed: number of its table since they were cleared, partition
        and version."""
    def allow(self, rows: tuple[int, int, int], count: int, until: int) -> None:
        """Allows so many rows like ``wanted`` before a time in microseconds."""
    def set_printable(self, spans: list[tuple[int, int]]) -> None:
        """Sets the characters that stand for themselves in Go's quotes, as spans of code points."""
    def take_allowed(self) -> list[tuple[tuple[int, int, int], int]]:
        """How many were written of the rows that were allowed; none is allowed from now on."""
    def check(self, key: bytes, kind: bytes, position: list[int]) -> list[int] | None:
        """The last position of a key where this one is behind it; else this one is remembered."""
    def hold(self, partition: int, rows: int, key: bytes, value: bytes) -> None:
        """Goes on with a message that the encoder has begun."""
    def take_held(self) -> list[tuple[int, int, bytes, bytes]]:
        """The messages that were begun: partition, number of rows, key and value."""
    last_number: int
    """Of the last row with a number, from which rows without one go on."""
    last_commit_ts: int
    """The largest so far, behind which those stand that are made."""
    def take_lines(self) -> tuple[bytes, int]:
        """The values since the last call with a line break behind each, and how many."""
    def take(self) -> Rows:
        """Keys, values and partitions since the last call; no partitions without a topic."""
    def take_counts(self) -> list[tuple[str, int]]:
        """How many rows were counted under which notes, since the last call."""
