"""msgspec's types for the values of an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

UNSET = msgspec.UNSET

INT64: Final = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_TOO_WIDE: Final = 2_000


class Unlike(Exception):
    """The example is nothing that this path can read."""


def struct(
    fields: Sequence[tuple[str, Any]],
    *,
    strict: bool = True,
    optional: Sequence[str] = (),
    missing: Any = UNSET,
) -> type[Struct]:
    """An object with these members; the ``optional`` ones are ``missing`` where they are."""
    if len(fields) > _TOO_WIDE:
        raise Unlike(f"an object of {len(fields)} members")
    attributes: list[Any] = []
    renamed = {}
    for place, (name, type_) in enumerate(fields):
        attribute = f"f{place}"
        renamed[attribute] = name
        default = (missing,) if name in optional else ()
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


def same(value: Any) -> Any:
    """The type of which ``value`` is the only value."""
    if value is None:
        return type(None)
    if type(value) is str or (type(value) is int and abs(value) < 1 << 62):
        return Literal[value]
    if type(value) is list:
        items: Any = tuple(same(item) for item in value)
        return tuple[items]
    if type(value) is dict:
        return struct([(name, same(item)) for name, item in value.items()])
    raise Unlike(f"a {type(value).__name__} that has to be the same")


def mirror(value: Any) -> Any:
    """The type of ``value`` and of NULL."""
    if value is None or type(value) is str:
        return str | None
    if type(value) is bool:
        return bool | None
    if type(value) is int:
        return INT64 | None
    if type(value) is float:
        return float | None
    if type(value) is dict:
        return struct([(name, mirror(item)) for name, item in value.items()]) | None
    raise Unlike("a list that nobody reads")
