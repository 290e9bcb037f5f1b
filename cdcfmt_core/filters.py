"""Filter events by kind, operation, table, commit_ts and time of the source.

Table patterns are case-sensitive shell globs over ``database.table`` (or
``database.schema.table``); in backticks, the dots and stars of a part are literal.  ``*.table``
also matches a table that has no database.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.errors import DecodeError, OptionError
from cdcfmt_core.events import full_name

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^.`\s](?:[^.`]*[^.`\s])?))\s*(\.|$)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_KNOWN = 64 << 10
_ALWAYS_WANTED = frozenset({"watermark", "transaction", "heartbeat", "message", "corrupt"})


def parse_table_name(text: str, *, option: str = "table") -> tuple[str, ...]:
    """Split ``tbl``, ``db.tbl`` or ``db.schema.tbl`` into its parts, and remove their backticks.

    A table that has no database is named by its own name alone.

    :raises OptionError: if the text does not have one to three parts.
    """
    return tuple(name for name, _ in _split(text, option, least=1))


def split_name(name: tuple[str, ...]) -> tuple[str, str | None, str]:
    """Database ("" if there is none), schema (or None) and table of a name."""
    *parents, table = name
    return parents[0] if parents else "", parents[1] if len(parents) > 1 else None, table


def _split(text: str, option: str, *, least: int = 2) -> list[tuple[str, bool]]:
    parts: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            break
        quoted, plain, dot = match.groups()
        parts.append((quoted.replace("``", "`"), True) if quoted else (plain, False))
        position = match.end()
        if not dot:
            break
    if position != len(text) or not least <= len(parts) <= 3 or text.endswith("."):
        raise OptionError(
            f"option {option}: {text!r} is not database.table or database.schema.table (put a "
            "part with a dot or blank in backticks; *.table is one of any database)"
        )
    return parts


def compile_pattern(text: str, option: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of a table's database, schema if any, and name.

    :raises OptionError: if the text does not have two or three parts.
    """
    return tuple(
        re.compile(re.escape(name) if quoted else fnmatch.translate(name))
        for name, quoted in _split(text, option)
    )


def _matches(patterns: Iterable[tuple[re.Pattern[str], ...]], parts: tuple[str, ...]) -> bool:
    if len(parts) == 1:
        parts = "", *parts
    return any(
        len(pattern) == len(parts)
        and all(part.fullmatch(name) for part, name in zip(pattern, parts, strict=True))
        for pattern in patterns
    )


@attrs.define
class EventFilter:
    """Decides from the envelope alone whether an event is wanted.

    - ``table``: one exact table; ``include_tables``, ``exclude_tables``: patterns.  Table filters
      apply only to kinds that belong to a table, never to corrupt messages.
    - ``starting_commit_ts``, ``ending_commit_ts``: inclusive bounds.  An event without commit_ts is
      then an error, except a table's schema, which always passes.
    - ``starting_source_time`` (inclusive), ``ending_source_time`` (exclusive): microseconds, for
      the physical part of commit_ts, else ``source_time``.  An event with neither is as above.
    - ``every_statement``: DDL passes the table filters, as a statement may affect other tables
      than the one its message names.
    - ``rows_refused``: number of rows found unwanted.
    """

    table: tuple[str, ...] | None = None
    include_tables: tuple[str, ...] = ()
    exclude_tables: tuple[str, ...] = ()
    starting_commit_ts: int | None = None
    ending_commit_ts: int | None = None
    starting_source_time: int | None = None
    ending_source_time: int | None = None
    kinds: frozenset[str] | None = None
    ops: frozenset[str] | None = None
    every_statement: bool = False
    rows_refused: int = attrs.field(init=False, default=0, eq=False, repr=False)
    _table_met: bool = attrs.field(init=False, default=False, eq=False, repr=False)
    _includes_met: set[int] = attrs.field(init=False, factory=set, eq=False, repr=False)
    _excludes_met: set[int] = attrs.field(init=False, factory=set, eq=False, repr=False)
    _include: tuple[tuple[re.Pattern[str], ...], ...] = attrs.field(init=False)
    _exclude: tuple[tuple[re.Pattern[str], ...], ...] = attrs.field(init=False)
    _tables: Cache[tuple[str, str | None, str], bool] = attrs.field(
        init=False, factory=lambda: Cache(32 << 20), eq=False, repr=False
    )

    def __attrs_post_init__(self) -> None:
        self._include = tuple(
            compile_pattern(text, "includeTables") for text in self.include_tables
        )
        self._exclude = tuple(
            compile_pattern(text, "excludeTables") for text in self.exclude_tables
        )

    @classmethod
    def of(cls, options: Mapping[str, Any], **more: Any) -> EventFilter:
        """The filter of the options that every format has; ``more``: other fields."""
        return cls(
            include_tables=options["includeTables"],
            exclude_tables=options["excludeTables"],
            starting_commit_ts=options["startingCommitTs"],
            ending_commit_ts=options["endingCommitTs"],
            starting_source_time=microseconds(options["startingSourceTime"]),
            ending_source_time=microseconds(options["endingSourceTime"]),
            **more,
        )

    def check(self) -> None:
        """:raises OptionError: if options contradict each other, so that no row can pass."""
        parts = self.table
        if parts is not None and (
            _matches(self._exclude, parts) or (self._include and not _matches(self._include, parts))
        ):
            raise OptionError(
                f"includeTables and excludeTables exclude table {table_names([parts])}"
            )
        low, high = self.starting_commit_ts, self.ending_commit_ts
        if low is not None and high is not None and low > high:
            raise OptionError(
                f"option endingCommitTs: {high} is before startingCommitTs, {low}: no event is "
                "between them"
            )
        low, high = self.starting_source_time, self.ending_source_time
        if low is not None and high is not None and low >= high:
            raise OptionError(
                "option endingSourceTime is not after startingSourceTime: no event is between them"
            )

    def wants_table(self, database: str, table: str, schema: str | None = None) -> bool:
        """Whether events of this table pass the table filters."""
        name = (database, schema, table)
        known = self._tables.get(name)
        if known is None:
            known = self._judge_table(full_name(database, schema, table))
            if (size := text_size(*name)) <= _LONGEST_KNOWN:
                self._tables.add(name, known, size)
        return known

    def _judge_table(self, parts: tuple[str, ...]) -> bool:
        met = [n for n, pattern in enumerate(self._include) if _matches([pattern], parts)]
        self._includes_met.update(met)
        if self.table is not None and parts != self.table:
            return False
        self._table_met = True
        left_out = [n for n, pattern in enumerate(self._exclude) if _matches([pattern], parts)]
        self._excludes_met.update(left_out)
        return not left_out and bool(met or not self._include)

    def unmatched(self) -> list[str]:
        """``table`` and patterns of ``includeTables`` that matched no table seen so far."""
        names = [] if self.table is None or self._table_met else [table_names([self.table])]
        return names + [
            text for n, text in enumerate(self.include_tables) if n not in self._includes_met
        ]

    def unmatched_exclusions(self) -> list[str]:
        """Patterns of ``excludeTables`` that matched no table seen so far."""
        return [text for n, text in enumerate(self.exclude_tables) if n not in self._excludes_met]

    @property
    def tables_seen(self) -> list[tuple[str, ...]]:
        """The names of the last tables that were compared with the patterns."""
        return [full_name(*name) for name in self._tables]

    def wants_kind(self, kind: str) -> bool:
        """Whether events of this kind can pass."""
        return self.kinds is None or kind in self.kinds

    def wants_op(self, op: str) -> bool:
        return self.ops is None or op in self.ops

    def wants_commit_ts(self, commit_ts: int | None) -> bool:
        """Whether this commit_ts is in the range.

        :raises DecodeError: if a range is set and the event has no commit_ts.
        """
        if self.starting_commit_ts is None and self.ending_commit_ts is None:
            return True
        if commit_ts is None:
            raise DecodeError(
                "startingCommitTs/endingCommitTs are set, but this event has no commit_ts"
                " (the producer sends none); remove those options for this input"
            )
        low, high = self.starting_commit_ts, self.ending_commit_ts
        return (low is None or commit_ts >= low) and (high is None or commit_ts <= high)

    @property
    def has_source_times(self) -> bool:
        """Whether a range of times of the source is set."""
        return self.starting_source_time is not None or self.ending_source_time is not None

    def wants_source_time(self, kind: str, commit_ts: int | None, source_time: int | None) -> bool:
        """Whether the time of an event is in the range; counts unwanted rows.

        :raises DecodeError: if a range is set and the event has no time of the source.
        """
        if not self.has_source_times or kind == "corrupt":
            return True
        time = source_time if commit_ts is None else (commit_ts >> 18) * 1000
        if time is None:
            if kind == "schema":
                return True
            raise DecodeError(
                "startingSourceTime/endingSourceTime are set, but this event has no time of the"
                " source (the producer sends none); remove those options for this input"
            )
        wanted = self._is_in_source_times(time)
        self.rows_refused += kind == "row" and not wanted
        return wanted

    def _is_in_source_times(self, time: int) -> bool:
        low, high = self.starting_source_time, self.ending_source_time
        return (low is None or time >= low) and (high is None or time < high)

    def wants(
        self,
        kind: str,
        database: str = "",
        table: str = "",
        schema: str | None = None,
        op: str | None = None,
        commit_ts: int | None = None,
    ) -> bool:
        """Whether an event passes all filters; counts unwanted rows.

        That of the source's time is applied only to a commit_ts; see :meth:`wants_source_time`.
        """
        wanted = self._wants(kind, database, table, schema, op, commit_ts)
        if not wanted and kind == "row":
            self.rows_refused += 1
        return wanted

    def _wants(
        self,
        kind: str,
        database: str,
        table: str,
        schema: str | None,
        op: str | None,
        commit_ts: int | None,
    ) -> bool:
        if kind == "corrupt":
            return self.wants_kind(kind)
        # Tables first: `unmatched` covers all tables of the input.
        if kind not in _ALWAYS_WANTED and not (
            self.wants_table(database, table, schema) or (self.every_statement and kind == "ddl")
        ):
            return False
        if not self.wants_kind(kind) or (op is not None and not self.wants_op(op)):
            return False
        if kind == "schema" and commit_ts is None:
            return True
        return self.wants_commit_ts(commit_ts) and (
            commit_ts is None or self._is_in_source_times((commit_ts >> 18) * 1000)
        )


def microseconds(time: datetime | None) -> int | None:
    """Microseconds since 1970."""
    return None if time is None else (time - _EPOCH) // timedelta(microseconds=1)


def table_names(names: Iterable[tuple[str, ...]]) -> str:
    """Table names for an error text, with backticks where they are needed."""
    return ", ".join(
        ".".join(part if re.fullmatch(r"[\w$-]+", part) else _quoted(part) for part in name)
        for name in sorted(names)
    )


def _quoted(part: str) -> str:
    return f"`{part.replace('`', '``')}`"
