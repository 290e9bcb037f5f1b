"""The options that a query's filters could be."""

from __future__ import annotations

import re

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, IsNotNull, Not

from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.query_filters import filters_by_option

TABLE, TIME = EqualTo(("table",), "orders"), GreaterThan(("source_time",), 5)


@pytest.mark.parametrize(
    ("filters", "given", "text"),
    [
        (
            [IsNotNull(("table",)), TABLE],
            {},
            "on table is applied to .* set includeTables, exclude",
        ),
        ([TIME, Not(TABLE)], {}, "on source_time, table is .* set startingSourceTime, ending"),
        (
            [GreaterThan(("_commit_version",), 5)],
            {"table": "a.b"},
            "; set startingCommitTs, ending",
        ),
        ([EqualTo(("c_commit_timestamp",), 5)], {"table": "a.b", "metadataPrefix": "c_"}, "Source"),
        # There is no option, or it is set; a column of the table has the name of an event's.
        ([EqualTo(("kind",), "ddl"), IsNotNull(("table",))], {}, None),
        ([TABLE], {"includeTables": "a.*"}, None),
        ([TABLE, TIME], {"table": "a.b"}, None),
        ([EqualTo(("extra", "table"), 1)], {}, None),
        ([], {}, None),
    ],
)
def test_options_instead_of_filters(
    filters: list[Filter], given: dict[str, str], text: str | None
) -> None:
    options = parse_options({"path": "x", **given})
    found = filters_by_option(filters, options)
    assert (found is None) is (text is None)
    assert text is None or re.search(text, found or "")
