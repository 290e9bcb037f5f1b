"""DDL in a stream of changes: columns that come, go or change their name beside the schema.

A stream has the schema that it was started with.  Rows behind a statement cannot tell that a
column of theirs is missing in it, or that one of its columns is gone; the statement can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import show
from cdcfmt_core.mysql.column_changes import ColumnChanges

_AGAIN = "and start the query again with the same checkpoint"


GAINED = (
    "the table gains a column that the schema lacks: add it to the schema and to what you write "
    f"to, {_AGAIN}; or set ignoreColumns to leave it out"
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
            yield name, GAINED
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
