"""The cheapest look at a message that no plan reads: whether it is a row, and wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout, Members
from pyspark_cdcfmt.columnar.structs import UNSET, struct

Kind: TypeAlias = Literal["row", "unwanted", "other"]

_MAX_FRAME_BYTES = 64 << 20
_LOOKED_AT: Mapping[str, Any] = {
    "database": str,
    "schema": str | None,
    "table": str,
    "op": str,
    "never": bool | None,
    "commit_ts": Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None,
}


_OPTIONAL = ("schema", "never", "commit_ts")
_MAX_VERDICTS = 100_000


class Look:
    """From a message's value to what it is: a row, one that nobody wants, or neither.

    Only the latter may change what other messages mean.  What is around an envelope is not
    parsed here, and so must be what the reference path has parsed before.
    """

    def __init__(self, layout: Layout, event_filter: EventFilter) -> None:
        paths: dict[str, tuple[int, ...]] = {}
        envelope = _envelope(layout.members, (), paths)
        places = {role: ".".join(f"f{at}" for at in path) for role, path in paths.items()}
        self._layout = layout
        self._filter = event_filter
        self._decode = msgspec.json.Decoder(envelope).decode
        self._roles = [role for role in _LOOKED_AT if role in places]
        if event_filter.starting_commit_ts is None and event_filter.ending_commit_ts is None:
            # Of no interest, and different in every message.
            self._roles = [role for role in self._roles if role != "commit_ts"]
        self._get_all = attrgetter(*(places[role] for role in self._roles))
        self._get = {role: attrgetter(places[role]) for role in self._roles}
        self._verdicts: dict[tuple[Any, ...], Kind] = {}
        self._frames: set[tuple[bytes, bytes]] = set()
        self._frame_bytes = 0
        table = event_filter.table
        self._name = b"" if table is None else msgspec.json.encode(table[-1])

    def mentions(self, value: bytes, key: bytes | None = None) -> bool:
        """Whether the wanted table's name is in it: a hint only, as names may be escaped."""
        return self._name in value

    def __call__(self, value: bytes, key: bytes | None = None) -> Kind:
        layout = self._layout
        known = True
        document = value
        if layout.frame is not None:
            start, end = layout.frame(value)
            known = (value[:start], value[end:]) in self._frames
            document = value[start:end]
        try:
            message = self._decode(document)
            try:
                found = self._get_all(message)
            except AttributeError:
                found = tuple(_optional(self._get[role], message) for role in self._roles)
            verdict = self._verdicts.get(found)
            if verdict is None:
                if len(self._verdicts) > _MAX_VERDICTS:
                    self._verdicts.clear()
                verdict = self._verdicts[found] = self._judge(
                    {
                        role: None if value is UNSET else value
                        for role, value in zip(self._roles, found, strict=True)
                    }
                )
        except Exception:
            return "other"
        return verdict if known or verdict == "other" else "row"

    def _judge(self, found: Mapping[str, Any]) -> Kind:
        op = self._layout.ops.get(found["op"])
        if op is None or found.get("never") is True:
            return "other"
        table = found["table"]
        wanted = not table or self._filter.wants(
            "row",
            found["database"],
            table,
            found.get("schema") or None,
            op,
            found.get("commit_ts"),
        )
        return "row" if wanted else "unwanted"

    def trust(self, value: bytes) -> None:
        """The reference path found nothing wrong with this message."""
        if self._layout.frame is None:
            return
        start, end = self._layout.frame(value)
        frame = value[:start], value[end:]
        if frame not in self._frames:
            self._frame_bytes += len(frame[0]) + len(frame[1])
            if self._frame_bytes > _MAX_FRAME_BYTES:
                self._frames.clear()
                self._frame_bytes = 0
            self._frames.add(frame)


class EventsLook:
    """As :class:`Look`, for messages of events: their keys say what they are."""

    def __init__(self, layout: Layout, event_filter: EventFilter) -> None:
        self._tables = layout.tables
        self._wants = event_filter.wants
        table = event_filter.table
        self._name = b"" if table is None else msgspec.json.encode(table[-1])

    def mentions(self, value: bytes, key: bytes | None = None) -> bool:
        """Whether the wanted table's name is in the key: a hint only."""
        return key is None or self._name in key

    def __call__(self, value: bytes, key: bytes | None = None) -> Kind:
        try:
            assert self._tables is not None
            assert key is not None
            tables = self._tables(key, value)
            if not tables:
                return "other"
            wanted = [
                self._wants("row", database, table, None, None, commit_ts)
                for database, table, commit_ts in tables
            ]
        except Exception:
            return "other"
        return "row" if any(wanted) else "unwanted"

    def trust(self, value: bytes) -> None:
        """Nothing is left unparsed that the reference path would parse."""


def _optional(get: Callable[[Any], Any], message: msgspec.Struct) -> Any:
    """A member that may be missing, as may the object that it is in."""
    try:
        return get(message)
    except AttributeError:
        return None


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
            if role in _OPTIONAL:
                fields[-1] = (name, _LOOKED_AT[role] | msgspec.UnsetType)
                optional.append(name)
    return struct(fields, strict=False, optional=optional)
