"""Typed readers of messages, made from an example: what differs in kind is refused.

msgspec refuses what is not JSON exactly as orjson does, with two differences in what it
skips (nothing is skipped unless the projection leaves it out).  Types are narrow: members
that make up the table's schema are literals, and an object has exactly the members of the
example's.  So a message that passes needs no further look at its envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import attrs
import msgspec
from msgspec import Meta, Struct

from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout, Members
from pyspark_cdcfmt.columnar.framing import Framing
from pyspark_cdcfmt.columnar.lines import LinesReader
from pyspark_cdcfmt.columnar.structs import Unlike, mirror, same, struct

Path: TypeAlias = tuple[int, ...]
"""Where a member lies: its place in the envelope's struct, and so on inward."""

Limits: TypeAlias = Mapping[tuple[str, ...], tuple[int, int]]


@attrs.frozen
class Images:
    """Which cells of images are read.

    ``names`` are the columns of a row and ``types`` those of their JSON values; ``wanted``
    are the columns that become cells, and ``keys`` those that tell whether an update changed
    the key.  ``unknown`` must not come: columns of the schema that the example lacks.
    ``tell_extra``: what ``extra`` shows must be what it is in the example.
    """

    names: tuple[str, ...]
    types: Mapping[str, Any]
    wanted: tuple[str, ...]
    keys: tuple[str, ...]
    unknown: tuple[str, ...]
    before_updates: bool
    tell_extra: bool = False


@attrs.frozen
class MessageReader:
    """``read(values, keys)`` gives a struct of each message, and None.

    Or those of all events in the messages, and how many events each message has.  It raises
    where one of them is not like the example.  ``paths`` tell where each role lies in a struct.
    ``nevers`` are the members that must not be true.  ``partial``: images before updates may
    lack columns, which are UNSET then.
    ``flags`` are the places of cells that must be true, behind the columns' own.
    ``doubts_nulls``: NULLs in ``before`` are certain only beside a column that did not change;
    ``hides``: there may be one among columns that nobody wants.
    """

    read: Callable[[Sequence[bytes], Sequence[bytes | None]], tuple[list[Any], list[int] | None]]
    paths: Mapping[str, Path]
    nevers: tuple[Path, ...]
    batched: bool
    partial: bool
    lines: LinesReader | None = None
    flags: Sequence[int] = ()
    doubts_nulls: bool = False
    hides: bool = False


def make_reader(
    layout: Layout,
    wire: dict[str, Any],
    images: Images,
    event_filter: EventFilter,
    limits: Limits,
    framing: Framing,
) -> MessageReader:
    """The reader of messages like the one whose envelope is ``wire``.

    :raises Unlike: if it is no message that this path can read.
    """
    return _Maker(layout, images, event_filter, limits).make(wire, framing)


def _reads(
    decode: Callable[[bytes], Struct], framing: Framing | None
) -> Callable[[Sequence[bytes], Sequence[bytes | None]], tuple[list[Any], None]]:
    def read(values: Sequence[bytes], keys: Sequence[bytes | None]) -> tuple[list[Any], None]:
        documents = values if framing is None else framing.documents(values, keys)
        return [decode(document) for document in documents], None

    return read


def commit_ts_type(event_filter: EventFilter, limits: tuple[int, int] | None = None) -> Any:
    """The type of a TSO that the filter wants, within limits."""
    low, high = limits or (0, (1 << 63) - 1)
    low = max(low, event_filter.starting_commit_ts or 0)
    if event_filter.ending_commit_ts is not None:
        high = min(high, event_filter.ending_commit_ts)
    return Annotated[int, Meta(ge=low, le=high)]


class _Maker:
    def __init__(
        self, layout: Layout, images: Images, event_filter: EventFilter, limits: Limits
    ) -> None:
        self._layout = layout
        self._images = images
        self._filter = event_filter
        self._limits = dict(limits)
        self._paths: dict[str, Path] = {}
        self._nevers: list[Path] = []
        self._batched = False
        self._partial = False

    def make(self, wire: dict[str, Any], framing: Framing) -> MessageReader:
        lists = [value for value in wire.values() if type(value) is list]
        self._batched = self._layout.in_lists and any(
            len(items) > 1 and type(items[0]) is dict for items in lists
        )
        try:
            envelope = self._envelope(wire, self._layout.members, (), ())
            decoder = msgspec.json.Decoder(envelope)
        except (TypeError, ValueError) as error:
            raise Unlike(str(error)) from error
        if self._limits:
            raise Unlike("it lacks a member that must lie within limits")
        if self._layout.begins and "commit_ts" not in self._paths:
            framing = attrs.evolve(framing, begins=self._layout.begins)
        return MessageReader(
            _reads(decoder.decode, None if framing.is_empty else framing),
            self._paths,
            tuple(self._nevers),
            self._batched,
            self._partial,
            LinesReader(envelope, framing, tuple(wire)),
        )

    def _envelope(
        self, wire: dict[str, Any], members: Members, path: Path, names: tuple[str, ...]
    ) -> type[Struct]:
        fields: list[tuple[str, Any]] = []
        images: list[str] = []
        if self._layout.lacks_images and not path:
            images = [name for name, role in members.items() if role in ("before", "after")]
            wire = {**wire, **{name: wire.get(name) for name in images}}
        for place, (name, value) in enumerate(wire.items()):
            role = members.get(name)
            if role is None:
                raise Unlike(f"no member {name} is known")
            here = (*path, place)
            if isinstance(role, Mapping):
                if type(value) is not dict:
                    raise Unlike(f"{name} is no object")
                fields.append((name, self._envelope(value, role, here, (*names, name))))
                continue
            self._paths[role] = here
            limits = self._limits.pop((*names, name), None)
            fields.append((name, self._type_of(role, value, here, limits)))
        return struct(fields, optional=images, missing=None)

    def _type_of(self, role: str, value: Any, here: Path, limits: tuple[int, int] | None) -> Any:
        if role in ("database", "schema", "table", "same"):
            return same(value)
        if role in ("extra", "position") and self._images.tell_extra:
            return same(value)
        if role == "never":
            self._nevers.append(here)
            return bool | None
        if role == "op":
            return Literal[tuple(self._layout.ops)]
        if role == "commit_ts":
            return commit_ts_type(self._filter, limits)
        if role in ("source_time", "other_time"):
            low, high, _ = self._layout.times
            if limits is not None:
                low, high = max(low, limits[0]), min(high, limits[1])
            return Annotated[int, Meta(ge=low, le=high)]
        if role == "after":
            row = self._image_type(value, self._row())
            return row if self._layout.deleted_row == "after" else row | None
        if role == "before":
            return self._before(value)
        if limits is not None:
            return Annotated[int, Meta(ge=limits[0], le=limits[1])]
        return mirror(value)

    def _row(self, optional: bool = False) -> type[Struct]:
        """A row of the wanted columns; ``optional``: any of them may be missing."""
        images = self._images
        fields = [(name, images.types[name]) for name in images.wanted]
        may_lack: tuple[str, ...] = ()
        others = len(images.wanted) < len(images.names)
        strict = not others or self._layout.column_types is None
        if others and strict:
            # A column that nobody knows would be an error, whoever wants it.
            fields += [(name, msgspec.Raw) for name in images.names if name not in images.wanted]
        elif others:
            fields += [(name, msgspec.UnsetType) for name in images.unknown]
            may_lack = images.unknown
        if optional:
            fields = [(name, type_ | msgspec.UnsetType) for name, type_ in fields]
            may_lack = tuple(name for name, _ in fields)
        return struct(fields, strict=strict, optional=may_lack)

    def _before(self, value: Any) -> Any:
        images = self._images
        if not images.before_updates and self._layout.deleted_row == "after":
            # Only the key counts: whether it changed.
            fields = [(name, images.types[name] | msgspec.UnsetType) for name in images.keys]
            strict = images.tell_extra
            if strict:
                # The metadata of an event's variants have the columns of both images.
                others = [name for name in images.names if name not in images.keys]
                fields += [(name, msgspec.Raw) for name in others]
            row = struct(fields, strict=strict, optional=[name for name, _ in fields])
        else:
            rows = value if type(value) is list else [value]
            lacking = any(type(row) is dict and len(row) < len(images.names) for row in rows)
            self._partial = lacking and self._layout.completes_before
            row = self._row(optional=self._partial)
        return self._image_type(value, row) | None

    def _image_type(self, value: Any, row: type[Struct]) -> Any:
        if not self._layout.in_lists:
            return row
        if not self._batched:
            return tuple[row]  # type: ignore[valid-type]
        return Annotated[list[row], Meta(min_length=1)]  # type: ignore[valid-type]
