"""The cheapest look at a message that no plan reads: whether it is a row, and wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout, Members
from pyspark_cdcfmt.columnar.structs import UNSET, struct

Kind: TypeAlias = Literal["row", "unwanted", "quiet", "other"]

_MAX_FRAME_BYTES = 64 << 20
_LOOKED_AT: Mapping[str, Any] = {
    "database": str,
    "schema": str,
    "table": str,
    "op": str,
    "never": bool,
    "commit_ts": Annotated[int, Meta(ge=0, le=(1 << 63) - 1)],
}

# The last one is not where it is a row's only time.
_OPTIONAL = ("schema", "never", "commit_ts")
_MAX_VERDICT_BYTES = 32 << 20


class Look:
    """From a message's value to what it is: a row, one that nobody wants, or neither.

    Of the latter only those that are not quiet may change what other messages mean.  What is
    around an envelope is not parsed here, and so must be what the reference path has parsed
    before.
    """

    def __init__(self, layout: Layout, event_filter: EventFilter) -> None:
        paths: dict[str, tuple[int, ...]] = {}
        optional = _OPTIONAL if _has_role(layout.members, "source_time") else _OPTIONAL[:-1]
        envelope = _envelope(layout.members, (), paths, optional)
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
        self._verdicts: Cache[tuple[Any, ...], Kind] = Cache(_MAX_VERDICT_BYTES)
        self._decode_quiet = msgspec.json.Decoder(_quiet(layout.members, layout.quiet)).decode
        self._frames: set[tuple[bytes, bytes]] = set()
        self._frame_bytes = 0
        table = event_filter.table
        self._name = b"" if table is None else msgspec.json.encode(table[-1])

    def mentions(self, value: bytes, key: bytes | None = None) -> bool:
        """Whether the wanted table's name is in it: a hint only, as names may be escaped."""
        return self._name in value

    def __call__(self, value: bytes, key: bytes | None = None) -> Kind:
        kind = self._look(value)
        if kind == "other" and self._layout.quiet:
            try:
                self._decode_quiet(value)
            except Exception:
                return kind
            return "quiet"
        return kind

    def _look(self, value: bytes) -> Kind:
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
                verdict = self._judge(
                    {
                        role: None if value is UNSET else value
                        for role, value in zip(self._roles, found, strict=True)
                    }
                )
                texts = (each for each in found if isinstance(each, str))
                self._verdicts.add(found, verdict, text_size(*texts))
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


def _has_role(members: Members, role: str) -> bool:
    return any(
        _has_role(known, role) if isinstance(known, Mapping) else known == role
        for known in members.values()
    )


def _quiet(members: Members, words: tuple[str, ...]) -> Any:
    """Of messages whose word is one of these, by its place at the top of the envelope."""
    name = next((name for name, role in members.items() if role == "op"), None)
    if name is None or not words:
        return None
    return struct([(name, Literal[words])], strict=False)


def _envelope(
    members: Members,
    path: tuple[int, ...],
    paths: dict[str, tuple[int, ...]],
    may_lack: Sequence[str],
) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any]] = []
    optional: list[str] = []
    for name, role in members.items():
        here = (*path, len(fields))
        if isinstance(role, Mapping):
            inner = _envelope(role, here, paths, may_lack)
            fields.append((name, inner | None | msgspec.UnsetType))
            optional.append(name)
        elif role in _LOOKED_AT:
            paths[role] = here
            fields.append((name, _LOOKED_AT[role]))
            if role in may_lack:
                fields[-1] = (name, _LOOKED_AT[role] | None | msgspec.UnsetType)
                optional.append(name)
    return struct(fields, strict=False, optional=optional)
