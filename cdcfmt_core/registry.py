"""The installed formats and transports: look-up by name, conflicts and overrides.

A package that is broken, written for another plugin API, or in conflict with another one is
isolated; the reason is raised only when *its* format or transport is requested.  Every worker
process pays for imports, so a look-up loads only the entry points of that name; hence an entry
point must have the name of the format, transport or type map that it registers, or of the type
map that it overrides.

Environment: ``CDCFMT_DISABLED_PLUGINS`` (comma-separated entry-point or distribution
names) disables plugins; ``CDCFMT_STRICT_PLUGINS=1`` raises the first failure at once.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any

from cdcfmt_core.codec import AUTO, CodecSpec
from cdcfmt_core.errors import (
    BrokenPluginError,
    CdcfmtError,
    PluginError,
    UnknownFormatError,
    join_names,
)
from cdcfmt_core.known import Kind, packages
from cdcfmt_core.options import describe_owners
from cdcfmt_core.plugins import (
    Loaded,
    PluginInfo,
    PluginLoader,
    Registration,
    Registrations,
    ResolvedTypes,
    duplicate,
    resolved,
)
from cdcfmt_core.schema_registry import SchemaRegistrySpec
from cdcfmt_core.texts import did_you_mean, warn_broken
from cdcfmt_core.transport import TransportSpec


class Registry:
    """The formats, transports and type maps of one set of entry points.

    ``entry_points`` is for tests; by default, those installed.
    """

    def __init__(self, entry_points: Iterable[metadata.EntryPoint] | None = None) -> None:
        self._loader = PluginLoader(entry_points)
        self._codecs = Registrations("format", packages("formats"))
        self._aliases = Registrations("format")
        owners = packages("transports")
        self._transports = Registrations("transport", owners)
        prefixes = {f"{name}.": package for name, package in owners.items()}
        self._prefixes = Registrations("prefix of options", prefixes)
        self._schema_registries = Registrations("schema registry", packages("schema_registries"))
        maps = {**self._codecs.owners, **packages("type_maps")}
        self._type_maps = Registrations("type map", maps)
        self._complete = False
        # Streams of one driver look up names concurrently.
        self._loading = threading.RLock()

    # Look-up

    def get_codec(self, name: str) -> CodecSpec:
        """The format of this name or alias.

        :raises UnknownFormatError: names the installed formats and the package to install.
        :raises DuplicateFormatError: names both packages.
        :raises BrokenPluginError: or PluginApiError, if its package is not usable.
        """
        wanted = name.lower()
        self._load(wanted)
        if wanted not in self._codecs:
            self.discover()
        spec: CodecSpec | None = self._codecs.get_unique(wanted) or self._aliases.get_unique(wanted)
        if spec is None:
            raise self._missing("formats", name, [*self._codecs, *self._aliases])
        return spec

    def codecs(self) -> dict[str, CodecSpec]:
        """Every usable format by its name, sorted."""
        self.discover()
        return self._codecs.usable()

    def codecs_of(self, protocol: str) -> list[CodecSpec]:
        """The formats that a message may have: every usable one for ``auto``, else the given one.

        :raises: as :meth:`get_codec`.
        """
        return [*self.codecs().values()] if protocol.lower() == AUTO else [self.get_codec(protocol)]

    def get_transport(self, name: str) -> TransportSpec:
        """The transport of this name (in lower case).

        :raises UnknownFormatError: names the installed transports and the package to install.
        :raises DuplicateFormatError: names both packages that register it, or its prefix.
        :raises BrokenPluginError: or PluginApiError, if its package is not usable.
        """
        self._load(name)
        if name not in self._transports:
            self.discover()
        spec: TransportSpec | None = self._transports.get_unique(name)
        if spec is None:
            raise self._missing("transports", name, self._transports)
        self._prefixes.get_unique(spec.prefix)
        return spec

    def transport_of(self, option: str) -> TransportSpec | None:
        """The transport whose prefix an option (in lower case) starts with, or None.

        :raises: as :meth:`get_transport`, also if the prefix is that of a first-party transport
            that is not installed.
        """
        name, dot, _ = option.partition(".")
        if not dot:
            return None
        self._load(name)
        if name + dot not in self._prefixes:
            self.discover()
        spec: TransportSpec | None = self._prefixes.get_unique(name + dot)
        if spec is not None or name in packages("transports"):
            return self.get_transport(name if spec is None else spec.name)
        return None

    def transports(self) -> dict[str, TransportSpec]:
        """Every usable transport by its name, sorted."""
        self.discover()
        prefixes = self._prefixes.usable()
        return {name: spec for name, spec in self._transports.usable().items() if name in prefixes}

    def schema_registries(self) -> dict[str, SchemaRegistrySpec]:
        """Every usable kind of schema registry by its name, sorted."""
        self.discover()
        return self._schema_registries.usable()

    def plugins(self) -> list[PluginInfo]:
        """Every entry point with its registrations, or its error."""
        self.discover()
        return sorted(self._loader.infos.values(), key=lambda info: (info.entry_point, info.dist))

    def conflicts(self) -> list[PluginError]:
        """An error for every name that more than one package registers."""
        self.discover()
        formats = Registrations("format", self._codecs.owners, self._aliases | self._codecs)
        kinds = (
            formats, self._transports, self._prefixes, self._schema_registries, self._type_maps
        )  # fmt: skip
        errors = [error for each in kinds for error in each.conflicts()]
        picked = (self._pick_type_map(name) for name in sorted(self._type_maps))
        overrides = (error for error in picked if isinstance(error, PluginError))
        return errors + [each for each in overrides if str(each) not in map(str, errors)]

    def failures(self) -> list[PluginError]:
        """The errors of plugins that could not be loaded, and the conflicts between plugins."""
        broken = [info.error for info in self.plugins() if info.error is not None]
        return [*broken, *self.conflicts()]

    def warn(self, protocol: str, note: Callable[[str], None] | None = None) -> None:
        """Warn of the plugins that ``auto`` has to do without; a named format needs no other.

        :param note: gets each text; by default, it is logged once per process.
        """
        for error in self.failures() if protocol.lower() == AUTO else ():
            if note is None:
                warn_broken(f"{error.problem}:", error.remedy)
            else:
                note(str(error))

    def broken_packages(self) -> list[str]:
        """The distributions of plugins that could not be loaded."""
        return [info.dist for info in self._loader.infos.values() if info.error is not None]

    def check_type_maps(self) -> list[PluginError]:
        """The errors of type maps that fail for ordinary texts."""
        self.discover()
        errors = []
        for each in (each for name in sorted(self._type_maps) for each in self._type_maps[name]):
            try:
                [resolved(each, text) for text in ("int", "varchar(20)", "acme")]
            except PluginError as error:
                errors.append(error)
        return errors

    def overrides(self) -> list[str]:
        """A line for every type map that overrides another one."""
        self.discover()
        return [
            f"type map {each.value.overrides} is overridden by {each.value.name} "
            f"({each.plugin.dist} {each.plugin.version})"
            + ("" if each.value.overrides in self._type_maps else ", which is not installed")
            for registered in self._type_maps.values()
            for each in registered
            if each.value.overrides
        ]

    def get_type_map(self, name: str) -> ResolvedTypes:
        """A function from type text to logical type: overrides, then the map, else Unknown."""
        self._load(name.lower())
        if name not in self._type_maps:
            self.discover()
        picked = self._pick_type_map(name)
        if isinstance(picked, CdcfmtError):
            raise picked
        if isinstance(error := self._kept_aside("type map", name), PluginError):
            # It may be an override, without which types differ.
            warn_broken(f"type map {name} is used without", str(error))

        return ResolvedTypes(picked)

    def type_map_for(self, codec: CodecSpec, chosen: str | None) -> ResolvedTypes:
        """The chosen type map, else the format's own; see :meth:`get_type_map`.

        :raises BrokenPluginError: if the format's own is not installed.
        """
        try:
            return self.get_type_map(chosen or codec.type_map)
        except UnknownFormatError as error:
            if chosen:
                raise
            raise BrokenPluginError(
                f"format {codec.name!r} ({codec.package}): {error}",
                "install that type map, or set typeMap",
            ) from error

    # Discovery

    def register(self, plugin: object, name: str) -> PluginInfo:
        """Register a plugin object of this process (notebooks, tests) as if installed.

        It replaces an earlier one of the same name.
        """
        loaded = self._loader.adopt(plugin, name)
        for known in vars(self).values():
            if isinstance(known, Registrations):
                known.drop(name)
        self._add(loaded)
        return loaded.info

    def discover(self) -> None:
        """Load every entry point that is not loaded yet; failures are kept per plugin."""
        with self._loading:
            if not self._complete:
                self._complete = True
                self._load(None)

    def _load(self, name: str | None) -> None:
        with self._loading:
            for loaded in self._loader.load(name):
                self._add(loaded)

    def _add(self, loaded: Loaded) -> None:
        for spec in loaded.codecs:
            self._codecs.add(spec.name.lower(), spec, loaded.info)
            for alias in spec.aliases:
                self._aliases.add(alias.lower(), spec, loaded.info)
        for transport in loaded.transports:
            self._transports.add(transport.name, transport, loaded.info)
            self._prefixes.add(transport.prefix, transport, loaded.info)
        for kind in loaded.schema_registries:
            self._schema_registries.add(kind.name, kind, loaded.info)
        for type_map in loaded.type_maps:
            self._type_maps.add(type_map.name, type_map, loaded.info)

    # Errors

    def _missing(self, kind: Kind, name: str, known: Iterable[str]) -> CdcfmtError:
        what, package = kind[:-1].replace("_", " "), packages(kind).get(name.lower())
        if aside := self._kept_aside(what, name, package):
            return aside
        lists: dict[str, Any] = {"formats": self.codecs, "transports": self.transports}
        text, where = f"unknown {what} {name!r}", ""
        if kind == "transports":
            text, where = f"unknown transport {name!r}", ", on driver and executors"
        text += f"; installed: {join_names(lists.get(kind, self._type_maps.keys)())}"
        if package is not None:
            text += f". Install it{where}: pip install {package}"
        else:
            hint = f"; its package needs the entry point {name!r} (group cdcfmt)"
            text += did_you_mean(name.lower(), known) or hint * (kind == "type_maps")
        if broken := self.broken_packages():
            text += f". Broken: {join_names(broken)} (see python -m cdcfmt_core)"
        return UnknownFormatError(text)

    def _kept_aside(self, what: str, name: str, package: str | None = None) -> CdcfmtError | None:
        """The reason why the plugin with this name is not usable, or None."""
        for info in self._loader.infos.values():
            if info.entry_point.lower() == name.lower() or info.dist == package:
                if info.error is not None:
                    return info.error
                if info.disabled:
                    return UnknownFormatError(
                        f"{what} {name!r} is part of {info.dist}, which "
                        "CDCFMT_DISABLED_PLUGINS disables"
                    )
        return None

    def _pick_type_map(self, name: str) -> list[Registration] | CdcfmtError:
        own = self._type_maps.valid(name)
        if not own:
            return self._missing("type_maps", name, self._type_maps)
        over = [
            each
            for registered in self._type_maps.values()
            for each in registered
            if each.value.overrides == name
        ]
        if len(own) > 1:
            return duplicate("type map", name, own)
        if len(over) > 1:
            return duplicate("override of type map", name, over)
        return over + own


@functools.cache
def default_registry() -> Registry:
    """The registry of all installed plugins, created once per process."""
    return Registry()


def _owners(name: str) -> str:
    """A text that names the formats with this option; empty if there are none."""
    spelling, owners = "", []
    for codec in default_registry().codecs().values():
        for options, use in ((codec.options, ""), (codec.encode_options, " (for writing)")):
            own = [option.name for option in options if option.name.lower() == name.lower()]
            if own:
                spelling = own[0]
                owners.append(codec.name + use)
                break
    return f"; {spelling} is an option of {', '.join(owners)}." if owners else ""


describe_owners.append(_owners)
