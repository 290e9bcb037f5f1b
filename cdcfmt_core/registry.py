"""Which formats are installed: the entry-point loop, and look-up by name.

A package that is broken, written for another plugin API, or in conflict with another one
is kept aside with its reason and harms nobody else; the reason is raised when *its*
format is asked for.  Every Spark worker pays for imports, so a look-up by name loads the
entry points of that name only; for that to be the whole answer, an entry point must bear
the name of the format it brings, or of the type map that it brings or overrides.

Environment: ``CDCFMT_DISABLED_PLUGINS`` (comma-separated entry-point or distribution
names) leaves plugins out; ``CDCFMT_STRICT_PLUGINS=1`` raises the first failure at once.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import Any

import attrs
import pluggy

from cdcfmt_core import hookspecs
from cdcfmt_core.codec import API_VERSION, CodecSpec, Decode, DecoderContext
from cdcfmt_core.errors import (
    BrokenPluginError,
    CdcfmtError,
    DuplicateFormatError,
    PluginApiError,
    UnknownFormatError,
    join_names,
)
from cdcfmt_core.mysql import MYSQL
from cdcfmt_core.options import validate
from cdcfmt_core.types import LogicalType, TypeMap, Unknown

KNOWN_PACKAGES = {
    "canal-json": "cdcfmt-canal-json",
    "open-protocol": "cdcfmt-open-protocol",
    "debezium": "cdcfmt-debezium",
    "simple": "cdcfmt-simple",
    "cloudcanal-json": "cdcfmt-cloudcanal-json",
    "dts-avro": "cdcfmt-dts-avro",
}
"""First-party formats and the packages that bring them, for the error that says so."""


@attrs.define
class PluginInfo:
    """One entry point of the group ``cdcfmt``, and what came of it."""

    entry_point: str
    dist: str
    version: str
    codecs: tuple[str, ...] = ()
    type_maps: tuple[str, ...] = ()
    error: CdcfmtError | None = None
    disabled: bool = False


@attrs.define
class _Claim:
    """A codec or type map, and the plugin that brought it."""

    value: Any
    plugin: PluginInfo


class Registry:
    """The formats and type maps of one set of entry points.

    ``entry_points`` is for tests; by default it is what is installed.
    """

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
        self._plugins: dict[str, PluginInfo] = {}
        self._codecs: dict[str, list[_Claim]] = {}
        self._aliases: dict[str, list[_Claim]] = {}
        self._type_maps: dict[str, list[_Claim]] = {}
        core = PluginInfo("core", "cdcfmt-core", _version("cdcfmt-core"), type_maps=("mysql",))
        self._type_maps["mysql"] = [_Claim(MYSQL, core)]
        self._complete = False

    # Look-up

    def get_codec(self, name: str) -> CodecSpec:
        """The format of this name or alias.

        :raises UnknownFormatError: names what is installed and the package to install.
        :raises DuplicateFormatError: names both packages.
        :raises BrokenPluginError: or PluginApiError, for the package that would bring it.
        """
        wanted = name.lower()
        self._load_named(wanted)
        if wanted not in self._codecs:
            self.discover()
        claims = self._codecs.get(wanted) or self._aliases.get(wanted)
        if claims is None:
            raise self._missing(name)
        if len(claims) > 1:
            raise _duplicate("format", name, claims)
        spec: CodecSpec = claims[0].value
        return spec

    def codecs(self) -> dict[str, CodecSpec]:
        """Every usable format by its name, sorted."""
        self.discover()
        return {
            claims[0].value.name: claims[0].value
            for _, claims in sorted(self._codecs.items())
            if len(claims) == 1
        }

    def plugins(self) -> list[PluginInfo]:
        """Every entry point with what it brought or why it brought nothing."""
        self.discover()
        return sorted(self._plugins.values(), key=lambda info: (info.entry_point, info.dist))

    def conflicts(self) -> list[str]:
        """A line for every name that more than one package claims."""
        self.discover()
        formats = self._aliases | self._codecs
        return [
            str(_duplicate("format", name, claims))
            for name, claims in sorted(formats.items())
            if len(claims) > 1
        ] + [
            str(error)
            for name in sorted(self._type_maps)
            if isinstance(error := self._pick_type_map(name), CdcfmtError)
        ]

    def overrides(self) -> list[str]:
        """A line for every type map that stands in for another one."""
        self.discover()
        return [
            f"type map {claim.value.overrides} is overridden by {claim.value.name} "
            f"({claim.plugin.dist} {claim.plugin.version})"
            for claims in self._type_maps.values()
            for claim in claims
            if claim.value.overrides
        ]

    def get_type_map(self, name: str) -> Callable[[str], LogicalType]:
        """A total function from type text to logical type: overrides first, then the map itself."""
        self._load_named(name.lower())
        if name not in self._type_maps:
            self.discover()
        picked = self._pick_type_map(name)
        if isinstance(picked, CdcfmtError):
            raise picked
        resolvers = [claim.value.resolve for claim in picked]

        def resolve(text: str) -> LogicalType:
            for resolver in resolvers:
                logical: LogicalType | None = resolver(text)
                if logical is not None:
                    return logical
            return Unknown(text)

        resolve_short = functools.lru_cache(maxsize=4096)(resolve)
        # Not every text, so that hostile ones cannot fill the memory.
        return lambda text: resolve_short(text) if len(text) <= 2_000 else resolve(text)

    def open_decoder(
        self, name: str, options: Mapping[str, Any], context: DecoderContext
    ) -> Decode:
        """The decoder of a format, its options validated."""
        spec = self.get_codec(name)
        return spec.open_decoder(
            validate(options, spec.options, owner=f"format {spec.name}"), context
        )

    # Discovery

    def register(self, plugin: object, name: str) -> PluginInfo:
        """Register a plugin object of this process (notebooks, tests), as if installed.

        It takes the place of the one that was registered under this name before.
        """
        info = PluginInfo(name, name, "in this process")
        self._forget(f"{name}:{name}")
        self._plugins[f"{name}:{name}"] = info
        self._call_hooks(plugin, info, names=None)
        return info

    def _forget(self, key: str) -> None:
        info = self._plugins.pop(key, None)
        if self._manager.has_plugin(key):
            self._manager.unregister(name=key)
        for known in (self._codecs, self._aliases, self._type_maps):
            for name in list(known):
                known[name] = [claim for claim in known[name] if claim.plugin is not info]
                if not known[name]:
                    del known[name]

    def discover(self) -> None:
        """Load every entry point that has not been loaded; failures stay with their plugin."""
        if not self._complete:
            self._complete = True
            for entry_point in self._entry_points:
                self._load(entry_point)

    def _load_named(self, name: str) -> None:
        for entry_point in self._entry_points:
            if entry_point.name.lower() == name:
                self._load(entry_point)

    def _load(self, entry_point: metadata.EntryPoint) -> None:
        dist = entry_point.dist
        dist_name = dist.name if dist is not None else "unknown"
        key = f"{dist_name}:{entry_point.name}"
        if key in self._plugins:
            return
        info = PluginInfo(entry_point.name, dist_name, dist.version if dist is not None else "?")
        self._plugins[key] = info
        if {entry_point.name, dist_name} & self._disabled:
            info.disabled = True
            return
        try:
            plugin = entry_point.load()
        except Exception as error:
            self._fail(info, BrokenPluginError(_broken(info, error)), error)
            return
        if not self._manager.is_registered(plugin):
            names = {
                other.name.lower()
                for other in self._entry_points
                if other.dist is dist or (other.dist and dist and other.dist.name == dist.name)
            }
            self._call_hooks(plugin, info, names)

    def _call_hooks(self, plugin: object, info: PluginInfo, names: set[str] | None) -> None:
        # Each plugin is asked alone, so that whose result it is and whose fault is known.
        pluginname = f"{info.dist}:{info.entry_point}"
        try:
            self._manager.register(plugin, name=pluginname)
            others = [p for n, p in self._manager.list_name_plugin() if n != pluginname]
            self._manager.check_pending()
            ask = self._manager.subset_hook_caller
            codecs = _flatten(ask("cdcfmt_register_codecs", others)())
            type_maps = _flatten(ask("cdcfmt_register_type_maps", others)())
            _check_results(codecs, CodecSpec)
            _check_results(type_maps, TypeMap)
            if names is not None:
                _check_names([spec.name for spec in codecs], names)
                _check_names([item.overrides or item.name for item in type_maps], names)
        except Exception as error:
            if self._manager.has_plugin(pluginname):
                self._manager.unregister(name=pluginname)
            self._fail(info, BrokenPluginError(_broken(info, error)), error)
            return
        for spec in codecs:
            if spec.api_version != API_VERSION:
                self._fail(
                    info,
                    PluginApiError(
                        f"{info.dist} {info.version} was written for plugin API "
                        f"{spec.api_version}, this cdcfmt-core has {API_VERSION}: install "
                        f"versions of {info.dist} and cdcfmt-core that fit"
                    ),
                )
                return
        info.codecs = tuple(spec.name for spec in codecs)
        info.type_maps = tuple(type_map.name for type_map in type_maps)
        for spec in codecs:
            self._codecs.setdefault(spec.name.lower(), []).append(_Claim(spec, info))
            for alias in spec.aliases:
                self._aliases.setdefault(alias.lower(), []).append(_Claim(spec, info))
        for type_map in type_maps:
            self._type_maps.setdefault(type_map.name, []).append(_Claim(type_map, info))

    def _fail(
        self, info: PluginInfo, error: CdcfmtError, cause: BaseException | None = None
    ) -> None:
        error.__cause__ = cause
        info.error = error
        if self._strict:
            raise error

    # Errors

    def _missing(self, name: str) -> CdcfmtError:
        wanted = name.lower()
        package = KNOWN_PACKAGES.get(wanted)
        if aside := self._kept_aside("format", name, package):
            return aside
        text = f"unknown format {name!r}; installed: {join_names(self.codecs())}"
        if package is not None:
            text += f". Install it: pip install {package}"
        broken = [info.dist for info in self._plugins.values() if info.error is not None]
        if broken:
            text += f". Broken: {join_names(broken)} (see python -m cdcfmt_core)"
        return UnknownFormatError(text)

    def _kept_aside(self, what: str, name: str, package: str | None = None) -> CdcfmtError | None:
        """Why the plugin that would bring this name does not, if there is one."""
        for info in self._plugins.values():
            if info.entry_point.lower() == name.lower() or info.dist == package:
                if info.error is not None:
                    return info.error
                if info.disabled:
                    return UnknownFormatError(
                        f"{what} {name!r} comes with {info.dist}, which "
                        "CDCFMT_DISABLED_PLUGINS leaves out"
                    )
        return None

    def _pick_type_map(self, name: str) -> list[_Claim] | CdcfmtError:
        own = self._type_maps.get(name)
        if own is None:
            return self._kept_aside("type map", name) or UnknownFormatError(
                f"unknown type map {name!r}; installed: {join_names(self._type_maps)}"
            )
        over = [
            claim
            for claims in self._type_maps.values()
            for claim in claims
            if claim.value.overrides == name
        ]
        if len(own) > 1:
            return _duplicate("type map", name, own)
        if len(over) > 1:
            return _duplicate("override of type map", name, over)
        return over + own


@functools.cache
def default_registry() -> Registry:
    """The registry of what is installed, made once per process."""
    return Registry()


def _distinct(entry_points: Iterable[metadata.EntryPoint]) -> list[metadata.EntryPoint]:
    """Sorted, and without twins: one package found twice on the path is one package."""
    found: dict[tuple[str, str, str], metadata.EntryPoint] = {}
    for entry_point in entry_points:
        dist = entry_point.dist.name if entry_point.dist is not None else ""
        found.setdefault((entry_point.name, dist, entry_point.value), entry_point)
    return [found[key] for key in sorted(found)]


def _flatten(results: Iterable[Iterable[Any]]) -> list[Any]:
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
                "is named after its format, or after the type map that it brings or overrides)"
            )


def _broken(info: PluginInfo, error: Exception) -> str:
    return (
        f"plugin {info.entry_point!r} of {info.dist} {info.version} could not be loaded: "
        f"{type(error).__name__}: {error}"
    )


def _duplicate(what: str, name: str, claims: list[_Claim]) -> DuplicateFormatError:
    dists = " and ".join(f"{claim.plugin.dist} {claim.plugin.version}" for claim in claims)
    return DuplicateFormatError(
        f"{what} {name!r} is registered by {dists}: uninstall one, or leave one out with "
        "CDCFMT_DISABLED_PLUGINS"
    )


def _version(dist: str) -> str:
    try:
        return metadata.version(dist)
    except metadata.PackageNotFoundError:
        return "not installed"
