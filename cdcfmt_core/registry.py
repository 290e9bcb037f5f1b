"""The installed formats: look-up by name, conflicts and overrides.

A package that is broken, written for another plugin API, or in conflict with another one
is isolated with its reason; the reason is raised when *its*
format is asked for.  Every Spark worker pays for imports, so a look-up by name loads the
entry points of that name only; for that to be the whole answer, an entry point must bear
the name of the format it brings, or of the type map that it brings or overrides.

Environment: ``CDCFMT_DISABLED_PLUGINS`` (comma-separated entry-point or distribution
names) leaves plugins out; ``CDCFMT_STRICT_PLUGINS=1`` raises the first failure at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import Any

import attrs

from cdcfmt_core.codec import CodecSpec, Decode, DecoderContext
from cdcfmt_core.errors import (
    CdcfmtError,
    DuplicateFormatError,
    UnknownFormatError,
    join_names,
)
from cdcfmt_core.mysql import MYSQL
from cdcfmt_core.options import validate
from cdcfmt_core.plugins import Loaded, PluginInfo, PluginLoader
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import LogicalType, Unknown

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
class _Claim:
    """A codec or type map, and the plugin that brought it."""

    value: Any
    plugin: PluginInfo


class Registry:
    """The formats and type maps of one set of entry points.

    ``entry_points`` is for tests; by default it is what is installed.
    """

    def __init__(self, entry_points: Iterable[metadata.EntryPoint] | None = None) -> None:
        self._loader = PluginLoader(entry_points)
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
        self._load(wanted)
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
        """Every entry point with its registrations, or the reason why it has none."""
        self.discover()
        return sorted(self._loader.infos.values(), key=lambda info: (info.entry_point, info.dist))

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
        self._load(name.lower())
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
        loaded = self._loader.adopt(plugin, name)
        for known in (self._codecs, self._aliases, self._type_maps):
            for claimed in list(known):
                known[claimed] = [c for c in known[claimed] if c.plugin.dist != name]
                if not known[claimed]:
                    del known[claimed]
        self._add(loaded)
        return loaded.info

    def discover(self) -> None:
        """Load every entry point that has not been loaded; failures stay with their plugin."""
        if not self._complete:
            self._complete = True
            self._load(None)

    def _load(self, name: str | None) -> None:
        for loaded in self._loader.load(name):
            self._add(loaded)

    def _add(self, loaded: Loaded) -> None:
        for spec in loaded.codecs:
            self._codecs.setdefault(spec.name.lower(), []).append(_Claim(spec, loaded.info))
            for alias in spec.aliases:
                self._aliases.setdefault(alias.lower(), []).append(_Claim(spec, loaded.info))
        for type_map in loaded.type_maps:
            self._type_maps.setdefault(type_map.name, []).append(_Claim(type_map, loaded.info))

    # Errors

    def _missing(self, name: str) -> CdcfmtError:
        wanted = name.lower()
        package = KNOWN_PACKAGES.get(wanted)
        if aside := self._kept_aside("format", name, package):
            return aside
        text = f"unknown format {name!r}; installed: {join_names(self.codecs())}"
        if package is not None:
            text += f". Install it: pip install {package}"
        else:
            text += did_you_mean(wanted, [*self._codecs, *self._aliases])
        broken = [info.dist for info in self._loader.infos.values() if info.error is not None]
        if broken:
            text += f". Broken: {join_names(broken)} (see python -m cdcfmt_core)"
        return UnknownFormatError(text)

    def _kept_aside(self, what: str, name: str, package: str | None = None) -> CdcfmtError | None:
        """The reason why the plugin with this name is not usable; None without such a plugin."""
        for info in self._loader.infos.values():
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
