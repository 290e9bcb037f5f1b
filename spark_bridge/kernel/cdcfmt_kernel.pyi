"""The compiled kernel: messages to Arrow record batches, and back."""

from collections.abc import Callable, Sequence
from typing import Any

def holds_any(lines: bytes, marks: Sequence[bytes], names: Sequence[bytes]) -> bool:
    """Whether any of ``marks`` occurs in the lines, or in the value of a line with a whole message.

    A whole message is an object whose first member has one of ``names``.  True if its value cannot
    be read.
    """

def variant_members(batch: Any, column: str, integers: Sequence[str], texts: Sequence[str]) -> Rows:
    """Members of the variants in a column of a record batch, as columns with the members' names.

    NULL if the variant is not an object, or the member is missing or has another type.

    :raises ValueError: for an unreadable variant.
    """

class Reason:
    """Why the kernel left a message or a row to the reference.

    - ``FULL``: the batch must be finished first, or the messages taken
    - ``UNKNOWN_SCHEMA``: no plan has the message's schema key, or the table of the row to write
    - ``UNKNOWN_WRITER``: the message names a writer schema that was not added
    - ``UNKNOWN_ZONE``: a value has a time zone that was not added
    - ``VALUE``: the value of a column, in a message that otherwise fits the layout
    - ``TARGET``: a value that is converted to the declared type of its column, if it fits
    - ``DOUBT``: a value whose meaning the reference decides, or counts
    - ``SIZE``: the message, or a row of it, is too large
    - ``MESSAGE``: the form of the message, its members, its operation
    - ``NOT_PERMITTED``: the encoder must permit the row, or write it
    - ``PRINTABLE_UNSET``: the printable characters must be set first
    - ``PANIC``: the kernel panicked, which is a bug
    """

    FULL: Reason
    UNKNOWN_SCHEMA: Reason
    UNKNOWN_WRITER: Reason
    UNKNOWN_ZONE: Reason
    VALUE: Reason
    TARGET: Reason
    DOUBT: Reason
    SIZE: Reason
    MESSAGE: Reason
    NOT_PERMITTED: Reason
    PRINTABLE_UNSET: Reason
    PANIC: Reason

class Stop:
    """Why the kernel stopped at a message, or at a row to write.

    - ``text``: the fact, for logs only; programs compare ``reason``
    - ``at``: the byte of the message's value, if known; that of a value for a column
    - ``column``, ``encoding``: the column of a value, and its value encoding
    - ``event``: the number of the event in its message
    """

    reason: Reason
    text: str
    at: int | None
    column: str | None
    encoding: str | None
    event: int

class Rows:
    """Rows of a batch, for ``pyarrow.record_batch``."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

class Kernel:
    """Reads the messages of one format into batches.

    :param settings: JSON (``pyspark_cdcfmt/kernel/settings.py``).
    """

    def __init__(self, settings: str) -> None: ...
    def read(
        self,
        values: list[bytes | None],
        keys: list[bytes | None],
        offsets: list[int | None],
        start: int,
        beside: list[int] = ...,
        places: list[tuple[int | None, int | None]] | None = None,
        attributes: list[tuple[str | None, Sequence[tuple[str, bytes | None]]]] | None = None,
    ) -> int:
        """Read messages from ``start`` on; returns the index of the first unread message.

        :param keys: may be empty if no layout uses keys.
        :param beside: bytes of topic, path and headers in each row of a message; one number if all
            messages have the same.
        :param places: partition and epoch of each message, for ``_sequence``.
        :param attributes: topic and headers of each message, if layouts depend on them.
        """
    def read_batch(self, batch: Any, start: int) -> int:
        """Like :meth:`read`, for a ``pyarrow`` batch with the columns of messages.

        :raises ValueError: if a column is missing, or has another type.
        """
    def read_lines(
        self, data: bytes, offset: int, at: int, are_whole: bool, path: int = ...
    ) -> int:
        """Read lines from the byte ``at`` on; returns the position of the first unread line.

        :param offset: the offset of ``data`` in its file.
        :param are_whole: whether lines are whole messages, not values.
        :param path: bytes of the path in each row.
        """
    def take_origins(
        self,
    ) -> tuple[
        list[str | None],
        list[int | None],
        list[int | None],
        list[list[tuple[str, bytes | None]]],
    ]:
        """Topics, partitions, timestamps (ms), headers of messages just read by ``read_lines``."""
    @property
    def stop(self) -> Stop | None:
        """Why the last message was not read; None if it was."""
    def event(self, value: bytes, key: bytes | None, number: int) -> tuple[bytes, bytes]:
        """Value and key of one event of a message; other methods accept them as a message.

        :raises ValueError: if the event does not exist.
        """
    def names(self, value: bytes, key: bytes | None) -> tuple[str, str, str]:
        """Database, schema and table of a message.

        :raises ValueError: if no layout fits.
        """
    def layout(self, value: bytes, key: bytes | None) -> int:
        """The index of a message's layout.

        :raises ValueError: if no layout fits.
        """
    @property
    def size(self) -> int:
        """Bytes of the messages read into the batch: of values, and of what rows have beside."""
    def skip(self, value: bytes, key: bytes | None, all: bool) -> None:
        """Make the filters skip messages with this one's table and schema; ``all``: skip all.

        :raises ValueError: if no layout fits.
        """
    def add_plan(self, value: bytes, key: bytes | None, plan: str) -> None:
        """Add the plan for messages with the schema key of this one.

        :raises ValueError: if the message has no schema key.
        """
    def add_zone(self, name: str, zone: str) -> None:
        """Add a time zone by its name in values; ``zone``: its offsets as JSON."""
    def missing_zone(self, value: bytes, key: bytes | None) -> str | None:
        """The name of a time zone in a message's values that was not added."""
    def envelope(self, value: bytes, key: bytes | None = ...) -> str:
        """Text and integers of an Avro message's envelope, as JSON.

        :raises ValueError: if no layout fits.
        """
    def add_writer(self, head: bytes, description: str | None) -> None:
        """Add the writer schema of messages whose values begin with ``head``.

        If layouts depend on topic and headers: of those with the attributes of the last message.

        :param description: JSON of ``schema``, ``layout`` and ``table``; None: the reference reads
            these messages.
        :raises ValueError: for a schema that the kernel cannot read.
        """
    def add_key_writer(self, head: bytes, schema: str | None) -> None:
        """The same for keys; ``schema``: as JSON."""
    def clear_plans(self) -> None: ...
    def pass_over(self) -> int:
        """Count a message that the reference reads; returns its number in the batch."""
    @property
    def messages(self) -> int:
        """Number of messages in the batch."""
    @property
    def rows(self) -> int:
        """Number of rows in the batch."""
    @property
    def skipped(self) -> int:
        """Number of messages skipped by the filters, in all batches."""
    def take_counts(self) -> list[tuple[str, int]]:
        """Numbers of counted values by note, since the last call."""
    def finish(self) -> Rows:
        """Return the rows of the batch, and clear it."""

class Writer:
    """Writes the rows of one task as messages, in order up to the first refused row.

    :param settings: JSON (``pyspark_cdcfmt/write/columnar.py``).
    :param compress: compresses values.
    """

    def __init__(self, settings: str, compress: Callable[[bytes], bytes] | None) -> None: ...
    def open(self, batch: Any) -> bool:
        """Start a record batch of ``pyarrow``; False if the reference must write all of it."""
    def add_table(self, table: str, row: int | None) -> None:
        """Add how to write the rows of a table.

        :param table: JSON.
        :param row: for events, a row of this table in the batch.
        """
    def clear_tables(self) -> None: ...
    def write(self, start: int, now: int) -> int:
        """Write rows from ``start`` on; returns the index of the first row not written.

        :param now: microseconds since 1970.
        """
    @property
    def stop(self) -> Stop | None:
        """Why writing stopped at a row; None at the end of the batch.

        - ``FULL``: the messages must be taken first
        - ``UNKNOWN_SCHEMA``: the table of the row was not added
        - ``NOT_PERMITTED``: the row needs a permit, see ``missing_permit``
        - ``PRINTABLE_UNSET``: ``set_printable`` was not called
        - others: the reference must write the row
        """
    @property
    def missing_permit(self) -> tuple[int, int, int]:
        """The row without a permit: index of its table (since they were cleared), partition and
        version."""
    def permit(self, rows: tuple[int, int, int], count: int, until: int) -> None:
        """Permit ``count`` rows like ``missing_permit`` until a time in microseconds."""
    def set_printable(self, spans: list[tuple[int, int]]) -> None:
        """Set the printable characters in Go's quotes, as spans of code points."""
    def take_permits(self) -> list[tuple[tuple[int, int, int], int]]:
        """Return the numbers of written rows that had a permit, and revoke all permits."""
    def check(self, key: bytes, kind: bytes, position: list[int]) -> list[int] | None:
        """The last position of a key if it is later than this one; else remember this one."""
    def restore_partial(self, partition: int, rows: int, key: bytes, value: bytes) -> None:
        """Continue a message that the encoder has begun."""
    def take_partial(self) -> list[tuple[int, int, bytes, bytes]]:
        """The unfinished messages: partition, number of rows, key and value."""
    last_number: int
    """Number of the last row with a number; rows without one continue from it."""
    last_commit_ts: int
    """The largest commit_ts so far; generated ones are larger."""
    def take_lines(self) -> tuple[bytes, int]:
        """The values since the last call, each with a line break, and their number."""
    def take(self) -> Rows:
        """Keys, values and partitions since the last call; no partitions without a topic."""
    def take_counts(self) -> list[tuple[str, int]]:
        """Numbers of counted rows by note, since the last call."""
