"""Load plugins from entry points, each isolated from the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any

import attrs
import pluggy

from cdcfmt_core import hookspecs
from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import (
    BrokenPluginError,
    CdcfmtError,
    DuplicateFormatError,
    PluginApiError,
    show,
)
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.types import LogicalType, TypeMap

_NO_HOOK = (
    "it has no hook: mark cdcfmt_register_codecs, cdcfmt_register_transports or "
    "cdcfmt_register_type_maps with @cdcfmt_core.hookimpl"
)


@attrs.define
class PluginInfo:
    """One entry point of the group ``cdcfmt``, and the result of loading it."""

    entry_point: str
    dist: str
    version: str
    codecs: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    type_maps: tuple[str, ...] = ()
    error: CdcfmtError | None = None
    disabled: bool = False


@attrs.frozen
class Loaded:
    """The registrations of one plugin."""

    info: PluginInfo
    codecs: list[CodecSpec] = attrs.field(factory=list)
    transports: list[TransportSpec] = attrs.field(factory=list)
    type_maps: list[TypeMap] = attrs.field(factory=list)


class PluginLoader:
    """Loads each entry point once; a failure is kept in its :class:`PluginInfo`."""

    def __init__(self, entry_points: Iterable[metadata.EntryPoint] | None = None) -> None:
        self._entry_points = _distinct(
            metadata.entry_points(group=hookspecs.PROJECT) if entry_points is None else entry_points
        )
        self._disabled = {
            name.strip() for name in os.environ.get("CDCFMT_DISABLED_PLUGINS", "").split(",")
        } - {""}
        self._strict = os.environ.get("CDCFMT_STRICT_PLUGINS", "") not in ("", "0")
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._pending = list(self._entry_points)
        self.infos: dict[str, PluginInfo] = {}

    def load(self, name: str | None = None) -> Iterator[Loaded]:
        """Load the entry points of this name, or all, that are not loaded yet."""
        wanted = [each for each in self._pending if name in (None, each.name.lower())]
        for entry_point in wanted:
            self._pending.remove(entry_point)
            yield self._load(entry_point)

    def adopt(self, plugin: object, name: str) -> Loaded:
        """Add a plugin object of this process; replaces an earlier one of this name."""
        key = f"{name}:{name}"
        if self._manager.has_plugin(key):
            self._manager.unregister(name=key)
        info = self.infos[key] = PluginInfo(name, name, "in this process")
        return self._ask(plugin, info, names=None)

    def _load(self, entry_point: metadata.EntryPoint) -> Loaded:
        dist = entry_point.dist
        dist_name = dist.name if dist is not None else "unknown"
        key = f"{dist_name}:{entry_point.name}"
        if key in self.infos:
            return Loaded(self.infos[key])
        info = PluginInfo(entry_point.name, dist_name, dist.version if dist is not None else "?")
        self.infos[key] = info
        if {entry_point.name, dist_name} & self._disabled:
            info.disabled = True
            return Loaded(info)
        try:
            plugin = entry_point.load()
        except SystemExit as error:
            return self._reject(info, ImportError(f"it exits: {error}"))
        except Exception as error:
            return self._reject(info, error)
        if self._manager.is_registered(plugin):
            return Loaded(info)
        names = {
            other.name.lower()
            for other in self._entry_points
            if other.dist is dist or (other.dist and dist and other.dist.name == dist.name)
        }
        return self._ask(plugin, info, names)

    def _ask(self, plugin: object, info: PluginInfo, names: set[str] | None) -> Loaded:
        # Call one plugin at a time, so that results and errors have an owner.
        pluginname = f"{info.dist}:{info.entry_point}"
        try:
            self._manager.register(plugin, name=pluginname)
            if not self._manager.get_hookcallers(plugin):
                raise TypeError(_NO_HOOK)
            others = [p for n, p in self._manager.list_name_plugin() if n != pluginname]
            self._manager.check_pending()
            ask = self._manager.subset_hook_caller
            codecs = _flatten(ask("cdcfmt_register_codecs", others)())
            transports = _flatten(ask("cdcfmt_register_transports", others)())
            type_maps = _flatten(ask("cdcfmt_register_type_maps", others)())
            _check_results(codecs, CodecSpec)
            _check_results(transports, TransportSpec)
            _check_results(type_maps, TypeMap)
            if not (codecs or transports or type_maps):
                raise TypeError("its hooks return nothing: return lists of its specs")
            if names is not None:
                _check_names([spec.name for spec in (*codecs, *transports)], names)
                _check_names([item.overrides or item.name for item in type_maps], names)
        except Exception as error:
            if self._manager.has_plugin(pluginname):
                self._manager.unregister(name=pluginname)
            return self._reject(info, error)
        info.codecs = tuple(spec.name for spec in codecs)
        info.transports = tuple(spec.name for spec in transports)
        info.type_maps = tuple(type_map.name for type_map in type_maps)
        return Loaded(info, codecs, transports, type_maps)

    def _reject(self, info: PluginInfo, cause: Exception) -> Loaded:
        error: CdcfmtError
        if isinstance(cause, PluginApiError):
            error = PluginApiError(
                f"{info.dist} {info.version} was written for {cause}: install versions of "
                f"{info.dist} and cdcfmt-core that match"
            )
        else:
            error = BrokenPluginError(
                f"plugin {info.entry_point!r} of {info.dist} {info.version} could not be loaded: "
                f"{type(cause).__name__}: {cause}"
            )
        error.__cause__ = cause
        info.error = error
        if self._strict:
            raise error
        return Loaded(info)


def _distinct(entry_points: Iterable[metadata.EntryPoint]) -> list[metadata.EntryPoint]:
    """Sorted entry points, without duplicates of packages found twice on the path."""
    found: dict[tuple[str, str, str], metadata.EntryPoint] = {}
    for entry_point in entry_points:
        dist = entry_point.dist.name if entry_point.dist is not None else ""
        found.setdefault((entry_point.name, dist, entry_point.value), entry_point)
    return [found[key] for key in sorted(found)]


def _flatten(results: Iterable[Iterable[Any]]) -> list[Any]:
    for result in results:
        if isinstance(result, CodecSpec | TransportSpec | TypeMap):
            raise TypeError(f"a hook returned a {type(result).__name__}: return a list")
    return [item for result in results for item in result]


def _check_results(results: list[Any], expected: type) -> None:
    for result in results:
        if not isinstance(result, expected):
            raise TypeError(f"a hook returned {result!r} where {expected.__name__} belongs")


def _check_names(registered: Iterable[str], entry_points: set[str]) -> None:
    for name in registered:
        if name.lower() not in entry_points:
            raise ValueError(
                f"it registers {name!r}, but has no entry point of that name (an entry point "
                "is named after its format or transport, or after the type map that it registers "
                "or overrides)"
            )


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
