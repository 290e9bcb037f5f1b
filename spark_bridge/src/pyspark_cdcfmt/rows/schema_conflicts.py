"""DDL in a stream of changes: columns that come, go or change their name beside the schema.

A stream has the schema that it was started with.  Rows behind a statement cannot tell that a
column of theirs is missing in it, or that one of its columns is gone; the statement can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import show
from cdcfmt_core.mysql.column_changes import ColumnChanges, column_changes
from cdcfmt_core.mysql.ddl import ddl_type_of
from cdcfmt_core.mysql.lexemes import NotUnderstood

_AGAIN = "and start the query again with the same checkpoint"


def statement_conflicts(
    query: str,
    declared: Sequence[str],
    ignored: Sequence[str],
    *,
    has_key: bool,
    case_sensitive: bool,
) -> Iterator[tuple[str, str | None, str]]:
    """What a statement changes beside a schema: the option that decides, column and reason.

    The column is None where it is about the whole table.

    ``has_key`` tells that the user names the columns of the key.  :func:`column_conflicts` has the
    rest.
    """
    by = f"by {show(query)} "
    try:
        changes = column_changes(query)
    except NotUnderstood:
        if ddl_type_of(query) == "ALTER" and "*" not in ignored:
            yield (
                "onSchemaChange",
                None,
                f"{by}columns may have changed, and the statement cannot be read: look at it, and "
                "set ignoreColumns=* to pass",
            )
        return
    for name, reason in column_conflicts(changes, declared, ignored, case_sensitive=case_sensitive):
        yield "onSchemaChange", name, by + reason
    if changes.key and not has_key:
        yield (
            "onSchemaChange",
            None,
            f"{by}the table has another primary key: make what you write to follow it, and set "
            "keyColumns to the columns of the key",
        )
    if changes.rows:
        yield (
            "onTruncate",
            None,
            f"{by}partitions go or come with their rows, of which there are no changes: do the "
            "same to what you write to",
        )


def column_conflicts(
    changes: ColumnChanges,
    declared: Sequence[str],
    ignored: Sequence[str],
    *,
    case_sensitive: bool,
) -> Iterator[tuple[str, str]]:
    """Columns of which a statement makes ``declared`` wrong, each with the reason and the mend.

    ``ignored`` are columns that may come and go; ``*`` is all of them.
    """
    is_declared = _among(declared, case_sensitive)
    is_ignored = _among(ignored, case_sensitive)
    if "*" in ignored:
        return
    for name in changes.added:
        if not is_declared(name) and not is_ignored(name):
            yield (
                name,
                "the table gains a column that the schema lacks: add it to the schema and to what "
                f"you write to, {_AGAIN}; or set ignoreColumns to leave it out",
            )
    for name in changes.dropped:
        if is_declared(name) and not is_ignored(name):
            yield (
                name,
                "the table loses a column of the schema, which would be NULL from here on: take "
                f"it out of the schema and of what you write to, {_AGAIN}; or set ignoreColumns to "
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
