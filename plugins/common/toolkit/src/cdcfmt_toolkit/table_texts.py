"""Error texts about tables that the input does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from cdcfmt_core.filters import EventFilter, table_names

_NEAREST = 3
_FIRST = 10


def unmatched_tables(event_filter: EventFilter) -> str | None:
    """An error text for wanted tables that matched nothing, with the most similar tables seen."""
    return _none_of(event_filter.unmatched(), event_filter)


def unmatched_exclusions(event_filter: EventFilter) -> str | None:
    """A text for patterns of ``excludeTables`` that matched no table seen."""
    text = _none_of(event_filter.unmatched_exclusions(), event_filter)
    return f"excludeTables excludes nothing: {text}" if text and event_filter.tables_seen else None


def _none_of(missing: list[str], event_filter: EventFilter) -> str | None:
    if not missing:
        return None
    near = nearest_tables(missing[0], event_filter.tables_seen)
    return f"no table {' or '.join(missing)} in the input; {near}"


def nearest_tables(wanted: str, known: Iterable[tuple[str, ...]]) -> str:
    """The tables most similar to ``wanted``, else the first ones, for an error text."""
    names = {table_names([name]).lower(): name for name in known if all(name)}
    likeness = {text: _likeness(wanted.lower(), text) for text in names}
    near = [text for text in names if likeness[text] >= 0.6]
    near = sorted(near, key=likeness.__getitem__, reverse=True)[:_NEAREST]
    if near:
        return f"did you mean {' or '.join(table_names([names[text]]) for text in near)}?"
    if not names:
        return "it has no tables"
    first = table_names(sorted(names.values())[:_FIRST])
    return f"it has {first}" + (f", … {len(names)} in all" if len(names) > _FIRST else "")


def _likeness(wanted: str, name: str) -> float:
    """Similarity from 0 to 1; unless a pattern, the table part weighs as much as the whole name."""
    if name.endswith("." + wanted):
        return 1
    whole = difflib.SequenceMatcher(None, wanted, name).ratio()
    table = wanted.rpartition(".")[2]
    if "*" in table or "?" in table:
        return whole
    return (whole + difflib.SequenceMatcher(None, table, name.rpartition(".")[2]).ratio()) / 2
