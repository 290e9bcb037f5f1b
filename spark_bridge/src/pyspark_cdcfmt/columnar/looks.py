"""The cheapest look at a message that no plan reads: whether it is a row, and wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout, Members
from pyspark_cdcfmt.columnar.wire import UNSET, struct

Look: TypeAlias = Callable[[bytes], Literal["row", "unwanted", "other"]]

_LOOKED_AT: Mapping[str, Any] = {
    "database": str,
    "table": str,
    "op": str,
    "never": bool | None,
    "commit_ts": Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None,
}


def make_look(layout: Layout, event_filter: EventFilter) -> Look:
    """A function from a message to what it is: a row, one that nobody wants, or neither.

    Only the latter may change what other messages mean.
    """
    paths: dict[str, tuple[int, ...]] = {}
    decode = msgspec.json.Decoder(_envelope(layout.members, (), paths)).decode
    get = {role: attrgetter(".".join(f"f{at}" for at in path)) for role, path in paths.items()}
    op_of, database_of, table_of = get["op"], get["database"], get["table"]
    never_of = get.get("never", lambda _: None)
    commit_ts_of = get.get("commit_ts", lambda _: None)
    ops, wants = layout.ops, event_filter.wants
    begins = layout.begins[:1]

    def look(value: bytes) -> Literal["row", "unwanted", "other"]:
        if not value.startswith(begins):
            return "other"
        try:
            message = decode(value)
            op = ops.get(op_of(message))
            if op is None or never_of(message) is True:
                return "other"
            try:
                commit_ts = commit_ts_of(message)
            except AttributeError:
                commit_ts = None
            wanted = wants(
                "row",
                database_of(message),
                table_of(message),
                None,
                op,
                None if commit_ts is UNSET else commit_ts,
            )
        except Exception:
            return "other"
        return "row" if wanted else "unwanted"

    return look


def _envelope(
    members: Members, path: tuple[int, ...], paths: dict[str, tuple[int, ...]]
) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any]] = []
    optional: list[str] = []
    for name, role in members.items():
        here = (*path, len(fields))
        if isinstance(role, Mapping):
            inner = _envelope(role, here, paths)
            fields.append((name, inner | None | msgspec.UnsetType))
            optional.append(name)
        elif role in _LOOKED_AT:
            paths[role] = here
            fields.append((name, _LOOKED_AT[role]))
            if role in ("never", "commit_ts"):
                fields[-1] = (name, _LOOKED_AT[role] | msgspec.UnsetType)
                optional.append(name)
    return struct(fields, strict=False, optional=optional)
