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

UNSET = msgspec.UNSET

Path: TypeAlias = tuple[int, ...]
"""Where a member lies: its place in the envelope's struct, and so on inward."""

_INT64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_TOO_WIDE = 2_000


class Unlike(Exception):
    """The example is nothing that this path can read."""


@attrs.frozen
class Images:
    """Which cells of images are read.

    ``names`` are the columns of a row, ``wanted`` those that become cells, and ``keys`` those
    that tell whether an update changed the key.  ``unknown`` must not come: columns of the
    schema that the example lacks.
    """

    names: tuple[str, ...]
    wanted: tuple[str, ...]
    keys: tuple[str, ...]
    unknown: tuple[str, ...]
    before_updates: bool


@attrs.frozen
class MessageReader:
    """``decode`` gives a struct; ``paths`` tell where each role lies in it.

    Where there is no commit_ts, ``begins`` are the bytes that a message must begin with.
    ``nevers`` are the members that must not be true.  ``partial``: images before updates may
    lack columns, which are UNSET then.
    """

    decode: Callable[[bytes], Struct]
    paths: Mapping[str, Path]
    nevers: tuple[Path, ...]
    begins: bytes
    batched: bool
    partial: bool


def make_reader(
    layout: Layout, wire: dict[str, Any], images: Images, event_filter: EventFilter
) -> MessageReader:
    """The reader of messages like ``wire``.

    :raises Unlike: if it is no message that this path can read.
    """
    return _Maker(layout, images, event_filter).make(wire)


class _Maker:
    def __init__(self, layout: Layout, images: Images, event_filter: EventFilter) -> None:
        self._layout = layout
        self._images = images
        self._filter = event_filter
        self._paths: dict[str, Path] = {}
        self._nevers: list[Path] = []
        self._batched = False
        self._partial = False

    def make(self, wire: dict[str, Any]) -> MessageReader:
        lists = [value for value in wire.values() if type(value) is list]
        self._batched = self._layout.in_lists and any(
            len(items) > 1 and type(items[0]) is dict for items in lists
        )
        try:
            envelope = self._envelope(wire, self._layout.members, ())
            decoder = msgspec.json.Decoder(envelope)
        except (TypeError, ValueError) as error:
            raise Unlike(str(error)) from error
        return MessageReader(
            decoder.decode,
            self._paths,
            tuple(self._nevers),
            b"" if "commit_ts" in self._paths else self._layout.begins,
            self._batched,
            self._partial,
        )

    def _envelope(self, wire: dict[str, Any], members: Members, path: Path) -> type[Struct]:
        fields: list[tuple[str, Any]] = []
        for place, (name, value) in enumerate(wire.items()):
            role = members.get(name)
            if role is None:
                raise Unlike(f"no member {name} is known")
            here = (*path, place)
            if isinstance(role, Mapping):
                if type(value) is not dict:
                    raise Unlike(f"{name} is no object")
                fields.append((name, self._envelope(value, role, here)))
                continue
            self._paths[role] = here
            fields.append((name, self._type_of(role, value, here)))
        return struct(fields)

    def _type_of(self, role: str, value: Any, here: Path) -> Any:
        if role in ("database", "table", "same"):
            return _same(value)
        if role == "never":
            self._nevers.append(here)
            return bool | None
        if role == "op":
            return Literal[tuple(self._layout.ops)]
        if role == "commit_ts":
            low, high = self._filter.starting_commit_ts or 0, (1 << 63) - 1
            if self._filter.ending_commit_ts is not None:
                high = min(high, self._filter.ending_commit_ts)
            return Annotated[int, Meta(ge=low, le=high)]
        if role in ("source_time", "other_time"):
            low, high, _ = self._layout.times
            return Annotated[int, Meta(ge=low, le=high)]
        if role == "after":
            return self._image_type(value, self._row(self._images.wanted, strict=True))
        if role == "before":
            return self._before(value)
        return _mirror(value)

    def _row(self, wanted: Sequence[str], *, strict: bool) -> type[Struct]:
        every = len(wanted) == len(self._images.names)
        fields: list[tuple[str, Any]] = [(name, str | None) for name in wanted]
        if not every:
            fields += [(name, msgspec.UnsetType) for name in self._images.unknown]
        return struct(fields, strict=every and strict, optional=self._images.unknown)

    def _before(self, value: Any) -> Any:
        images = self._images
        if not images.before_updates:
            # Only the key counts: whether it changed.
            fields = [(name, str | None | msgspec.UnsetType) for name in images.keys]
            row = struct(fields, strict=False, optional=images.keys)
        else:
            rows = value if type(value) is list else [value]
            lacking = any(type(row) is dict and len(row) < len(images.names) for row in rows)
            self._partial = lacking and self._layout.completes_before
            if self._partial:
                every = len(images.wanted) == len(images.names)
                fields = [(name, str | None | msgspec.UnsetType) for name in images.wanted]
                row = struct(fields, strict=every, optional=images.wanted)
            else:
                row = self._row(images.wanted, strict=True)
        return self._image_type(value, row) | None

    def _image_type(self, value: Any, row: type[Struct]) -> Any:
        if not self._layout.in_lists:
            return row
        if not self._batched:
            return tuple[row]  # type: ignore[valid-type]
        return Annotated[list[row], Meta(min_length=1)]  # type: ignore[valid-type]


def struct(
    fields: Sequence[tuple[str, Any]], *, strict: bool = True, optional: Sequence[str] = ()
) -> type[Struct]:
    """An object with these members; the ``optional`` ones are UNSET where they are missing."""
    if len(fields) > _TOO_WIDE:
        raise Unlike(f"an object of {len(fields)} members")
    attributes: list[Any] = []
    renamed = {}
    for place, (name, type_) in enumerate(fields):
        attribute = f"f{place}"
        renamed[attribute] = name
        default = (UNSET,) if name in optional else ()
        attributes.append((attribute, type_, *default))
    return msgspec.defstruct(
        "Object",
        attributes,
        rename=renamed,
        forbid_unknown_fields=strict,
        # No object of a message refers to itself.
        gc=False,
        kw_only=bool(optional),
    )


def _same(value: Any) -> Any:
    """The type of which ``value`` is the only value."""
    if value is None:
        return type(None)
    if type(value) is str or (type(value) is int and abs(value) < 1 << 62):
        return Literal[value]
    if type(value) is list:
        items: Any = tuple(_same(item) for item in value)
        return tuple[items]
    if type(value) is dict:
        return struct([(name, _same(item)) for name, item in value.items()])
    raise Unlike(f"a {type(value).__name__} that has to be the same")


def _mirror(value: Any) -> Any:
    """The type of ``value`` and of NULL."""
    if value is None or type(value) is str:
        return str | None
    if type(value) is bool:
        return bool | None
    if type(value) is int:
        return _INT64 | None
    if type(value) is float:
        return float | None
    if type(value) is dict:
        return struct([(name, _mirror(item)) for name, item in value.items()]) | None
    raise Unlike("a list that nobody reads")
