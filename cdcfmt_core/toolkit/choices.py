"""Check fields that are one of a few names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import attrs

from cdcfmt_core.texts import did_you_mean


def one_of(names: Any) -> Callable[[object, attrs.Attribute[Any], Any], None]:
    """An attrs validator: the value is one of the names in a ``Literal``.

    A misspelt name would otherwise have the meaning of another one.
    """
    known = get_args(names)

    def check(owner: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in known:
            near = did_you_mean(str(value), known)
            raise ValueError(
                f"{type(owner).__name__}: {attribute.name} is {value!r}, not one of "
                f"{', '.join(known)}{near}"
            )

    return check
