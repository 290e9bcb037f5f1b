"""Rows and statements that conflict with the schema of changes, and the options for them.

The schema of a stream is fixed at its start.  Only a statement shows that a column was dropped, or
that the schema lacks it; rows after the statement do not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NoReturn

from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import show
from cdcfmt_core.types import LogicalType, Unknown
from cdcfmt_mysql.column_changes import ColumnChanges, column_changes
from cdcfmt_mysql.ddl import ddl_type_of
from cdcfmt_mysql.lexemes import NotUnderstood
from pyspark_cdcfmt.rows.policy import BadValue, ValuePolicy, refuse
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import RESCUED

_AGAIN = "and start the query again with the same checkpoint"


class SchemaConflicts:
    """Handling of rows and statements that conflict with a schema of changes.

    :ivar own: the table's columns in the schema.
    """

    def __init__(self, own: Sequence[str], task: ReadTask, policy: ValuePolicy) -> None:
        options = task.options
        self._own = own
        self._policy = policy
        self._inferred = task.inferred
        self._rescued = options["metadataPrefix"] + RESCUED
        rescues = self._rescued in task.schema.names
        self._in_stream = options.streaming
        self._on_value = options["onSchemaChange"] or "fail"
        self._on_column = options["onSchemaChange"] or ("rescue" if rescues else "fail")
        self._on_truncate = options["onTruncate"]
        self._ignored = options["ignoreColumns"]
        self._has_key = bool(options["keyColumns"])
        self._case_sensitive = options.case_sensitive
        self._seen: set[str] = set()
        self._ddl: str | None = None

    def rescues_value(self, name: str, type_: LogicalType, error: BadValue) -> bool:
        """Whether a value that its column cannot hold is rescued; else it is NULL.

        :raises BadRow: if its row is refused.
        :raises PolicyError: if it ends the read; all of these methods may raise it.
        """
        if self._on_value in ("fail", "corrupt"):
            advice = "; declare a type that holds it"
            if "declare" in str(error):
                advice = ""
            elif isinstance(type_, Unknown):
                advice = (
                    "; the messages do not have the column's type: declare a string, or also read "
                    "the messages that have the types (DDL, Debezium's schema change topic)"
                )
            self._refuse(self._on_value, f"{error}{advice}", name)
        if self._on_value == "ignore":
            self._policy.note(name, "value that does not fit, as NULL")
        return bool(self._on_value != "ignore")

    def rescues_column(self, name: str) -> bool:
        """Whether the value of a column that an inferred schema lacks is rescued; else left out."""
        if self._on_column in ("fail", "corrupt"):
            self._refuse(
                self._on_column,
                "the schema has no such column (it was inferred from other messages): raise "
                "inferSampleMessages, or give a schema",
                name,
            )
        rescues = bool(self._on_column != "ignore")
        what = f"in {self._rescued}" if rescues else "left out"
        self._policy.counts[f"{name}: column that the schema lacks, {what}"] += 1
        return rescues

    def lose_key(self, reason: str) -> None:
        """Handle a row that lacks ``keyColumns``; the key in the messages replaces them."""
        if self._on_value in ("fail", "corrupt"):
            self._refuse(self._on_value, reason, None)
        self._policy.counts[f"{reason}: key of the messages in its place"] += 1

    def passes_truncate(self, statement: str, *, is_rename: bool = False) -> bool:
        """Whether TRUNCATE, DROP or RENAME of the table becomes a row."""
        if self._on_truncate == "ignore":
            self._policy.counts["truncates, drops and renames of the table, ignored"] += 1
        elif self._on_truncate != "row":
            reason = f"the table is truncated or dropped by {show(statement)}"
            if is_rename:
                reason = (
                    f"the table is renamed by {show(statement)}: its later changes have the new "
                    "name, with which another query reads them"
                )
            refuse("onTruncate", self._on_truncate, reason)
        return bool(self._on_truncate == "row")

    def follow(self, statement: str) -> None:
        """In a stream, refuse a statement after which rows do not fit the schema or the key.

        In a batch the driver warns of columns.
        """
        self._ddl = statement
        conflicts = statement_conflicts(
            statement,
            self._own,
            self._ignored,
            has_key=self._has_key,
            case_sensitive=self._case_sensitive,
        )
        for option, name, reason in conflicts if self._in_stream else ():
            if option == "onTruncate":
                if self._on_truncate != "ignore":
                    # No row can express that a part of the table was removed.
                    refuse(option, "corrupt" if self._on_truncate == "corrupt" else "fail", reason)
                continue
            if self._on_value in ("fail", "corrupt"):
                refuse(option, self._on_value, reason, name)
            what = "DDL that the schema does not follow"
            self._policy.counts[what if name is None else f"{name}: {what}"] += 1

    def compare(self, columns: Collection[str], read: Collection[str]) -> None:
        """Count, or refuse in a stream, columns that a user's schema and earlier rows lack.

        :param columns: the columns of a table schema.
        :param read: those of them in the user's schema.
        """
        if self._seen and not self._inferred:
            gained = sorted(set(columns) - self._seen - set(read))
            for name, reason in column_conflicts(
                ColumnChanges(gained), (), self._ignored, case_sensitive=self._case_sensitive
            ):
                if self._in_stream and self._on_value in ("fail", "corrupt"):
                    self._refuse(self._on_value, reason, name)
                self._policy.counts[f"{name}: column that the table gained, left out"] += 1
        self._seen |= set(columns)

    def _refuse(self, chosen: str, reason: str, name: str | None) -> NoReturn:
        if self._ddl is not None:
            reason += f"; the last DDL of the table before it is {show(self._ddl)}"
        refuse("onSchemaChange", chosen, reason, name)


def statement_conflicts(
    query: str,
    declared: Sequence[str],
    ignored: Sequence[str],
    *,
    has_key: bool,
    case_sensitive: bool,
) -> Iterator[tuple[str, str | None, str]]:
    """The conflict of a statement with a schema: option, column and reason.

    The column is None for the whole table.  See :func:`column_conflicts` for other parameters.

    :param has_key: whether the user names the key columns.
    """
    by = f"by {show(query)} "
    try:
        changes = column_changes(query)
    except NotUnderstood:
        if ddl_type_of(query) == "ALTER" and "*" not in ignored:
            yield (
                "onSchemaChange",
                None,
                f"{by}columns may have changed, and the statement cannot be parsed: check it, and "
                "set ignoreColumns=* to continue",
            )
        return
    for name, reason in column_conflicts(changes, declared, ignored, case_sensitive=case_sensitive):
        yield "onSchemaChange", name, by + reason
    if changes.key and not has_key:
        yield (
            "onSchemaChange",
            None,
            f"{by}the table has a new primary key: change your target accordingly, and set "
            "keyColumns to the columns of the key",
        )
    if changes.rows:
        yield (
            "onTruncate",
            None,
            f"{by}the statement adds or removes partitions with their rows, or removes duplicates, "
            "without change messages: do the same in your target",
        )


def column_conflicts(
    changes: ColumnChanges,
    declared: Sequence[str],
    ignored: Sequence[str],
    *,
    case_sensitive: bool,
) -> Iterator[tuple[str, str]]:
    """Columns in conflict with a statement, each with the reason and the remedy.

    :param ignored: columns that may be added and dropped; ``*`` is all of them.
    """
    is_declared = _among(declared, case_sensitive)
    is_ignored = _among(ignored, case_sensitive)
    if "*" in ignored:
        return
    for name in changes.added:
        if not is_declared(name) and not is_ignored(name):
            yield (
                name,
                "the table gains a column that the schema lacks: add it to the schema and to your "
                f"target, {_AGAIN}; or set ignoreColumns to leave it out",
            )
    for name in changes.dropped:
        if is_declared(name) and not is_ignored(name):
            yield (
                name,
                "the table loses a column of the schema, which would be NULL from now on: remove "
                f"it from the schema and from your target, {_AGAIN}; or set ignoreColumns to "
                "read NULL",
            )
    for old, new in changes.renamed.items():
        if is_declared(old) != is_declared(new) and not (is_ignored(old) or is_ignored(new)):
            yield (
                old,
                f"the column is now {show(new)}: declare both names, merge coalesce(new, old), "
                f"{_AGAIN}; or set ignoreColumns to either of them to read NULL",
            )


def _among(names: Sequence[str], case_sensitive: bool) -> Callable[[str], bool]:
    folded = {fold(name, case_sensitive=case_sensitive) for name in names}
    return lambda name: fold(name, case_sensitive=case_sensitive) in folded
