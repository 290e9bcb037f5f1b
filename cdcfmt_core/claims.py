"""Claims of names by plugins; a name that two plugins claim is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core.errors import BrokenPluginError, DuplicateFormatError, show
from cdcfmt_core.plugins import PluginInfo
from cdcfmt_core.types import LogicalType


@attrs.define
class Claim:
    """A registration under a name, and its plugin."""

    value: Any
    plugin: PluginInfo


class Claims(dict[str, list[Claim]]):
    """The claims of each name; ``what``: the kind of thing, for error texts."""

    def __init__(self, what: str, claims: Mapping[str, list[Claim]] = {}) -> None:
        super().__init__(claims)
        self._what = what

    def add(self, name: str, value: Any, plugin: PluginInfo) -> None:
        self.setdefault(name, []).append(Claim(value, plugin))

    def drop(self, dist: str) -> None:
        """Remove the claims of a distribution's plugins."""
        for name in list(self):
            self[name] = [claim for claim in self[name] if claim.plugin.dist != dist]
            if not self[name]:
                del self[name]

    def only(self, name: str) -> Any:
        """The value of this name, or None.

        :raises DuplicateFormatError: if several plugins claim it; names their packages.
        """
        claims = self.get(name, [])
        if len(claims) > 1:
            raise duplicate(self._what, name, claims)
        return claims[0].value if claims else None

    def usable(self) -> dict[str, Any]:
        """The values whose name only one plugin claims, by their own names, sorted."""
        return {
            claims[0].value.name: claims[0].value
            for _, claims in sorted(self.items())
            if len(claims) == 1
        }

    def conflicts(self) -> list[str]:
        """A line for every name that more than one plugin claims."""
        return [
            str(duplicate(self._what, name, claims))
            for name, claims in sorted(self.items())
            if len(claims) > 1
        ]


def duplicate(what: str, name: str, claims: list[Claim]) -> DuplicateFormatError:
    """The error for a name that several plugins claim."""
    dists = " and ".join(f"{claim.plugin.dist} {claim.plugin.version}" for claim in claims)
    return DuplicateFormatError(
        f"{what} {name!r} is registered by {dists}: uninstall one, or disable one with "
        "CDCFMT_DISABLED_PLUGINS"
    )


def resolved(claim: Claim, text: str) -> LogicalType | None:
    """The result of one type map for a type text.

    :raises BrokenPluginError: if it fails, or returns anything but a logical type or None.
    """
    name = f"type map {claim.value.name!r} of {claim.plugin.dist}"
    try:
        logical = claim.value.resolve(text)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BrokenPluginError(f"{name} failed for {show(text)}: {reason}") from error
    if logical is None or isinstance(logical, LogicalType):
        return logical
    raise BrokenPluginError(
        f"{name} maps {show(text)} to {logical!r}, which is not a logical type such as Bool()"
    )
