"""The filters of a query, which Spark shows to a source with filterPushdown.enabled."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import Filter, IsNotNull, IsNull, Not

from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.batch_reader import CdcBatchReader
from pyspark_cdcfmt.read.checks import warn

_TABLES = ("includeTables", "excludeTables")
_COMMITS = ("startingCommitTs", "endingCommitTs")
_TIMES = ("startingSourceTime", "endingSourceTime")
_OF_EVENTS = {
    **dict.fromkeys(("database", "schema", "table"), _TABLES),
    "commit_ts": _COMMITS,
    **dict.fromkeys(("commit_time", "source_time"), _TIMES),
}
_OF_CHANGES = {"commit_version": _COMMITS, "commit_timestamp": _TIMES}
"""The options that select by a column before a row is decoded."""


class FilteredReader(CdcBatchReader):
    """Leaves all filters to Spark, and names the options that would skip rows undecoded.

    Spark would use a read with filters for other queries of the DataFrame, too.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        if text := filters_by_option(filters, self._task.options):
            warn(text)
        return filters


def filters_by_option(filters: Iterable[Filter], options: ReadOptions) -> str | None:
    """A text about the filtered columns for which there are options, none of which is set."""
    prefix = "" if options.table is None else options["metadataPrefix"]
    known = _OF_EVENTS if options.table is None else _OF_CHANGES
    columns: dict[str, None] = {}
    wanted: dict[str, None] = {}
    for each in filters:
        compared = each.child if isinstance(each, Not) else each
        if isinstance(compared, IsNull | IsNotNull):
            # Spark adds it to each comparison.
            continue
        (name, *_) = compared.attribute  # type: ignore[attr-defined]
        added = name.lower().startswith(prefix.lower())
        names = known.get(name.lower().removeprefix(prefix.lower()), ()) if added else ()
        if names and all(not options[option] for option in names):
            columns[name] = None
            wanted.update(dict.fromkeys(names))
    if not columns:
        return None
    return (
        f"the query's filter on {', '.join(columns)} is applied to decoded rows; set "
        f"{', '.join(wanted)} to skip the others before"
    )
