"""Load plugins from entry points, each isolated from the others."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import Any, TypeVar

import attrs
import pluggy

from cdcfmt_core import hookspecs
from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.encoder import Encoder
from cdcfmt_core.errors import (
    INTERRUPTIONS,
    BrokenPluginError,
    CdcfmtError,
    DuplicateFormatError,
    PluginApiError,
    PluginError,
    describe,
    join_names,
    show,
)
from cdcfmt_core.lazy import installed, load, name_of
from cdcfmt_core.schema_registry import SchemaRegistrySpec
from cdcfmt_core.texts import did_you_mean, warn_broken
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.types import LogicalType, TypeMap, Unknown

HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("cdcfmt_register_"))


@attrs.define
class PluginInfo:
    """One entry point of the group ``cdcfmt``, and the result of loading it."""

    entry_point: str
    dist: str
    version: str
    codecs: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    schema_registries: tuple[str, ...] = ()
    type_maps: tuple[str, ...] = ()
    error: PluginError | None = None
    disabled: bool = False

    @property
    def package(self) -> str:
        """The distribution and its version, for texts."""
        return f"{self.dist} {self.version}"

    @property
    def remedy(self) -> str:
        """The user's remedy for a failure of this plugin."""
        return f"update or uninstall {self.dist}, or set CDCFMT_DISABLED_PLUGINS={self.entry_point}"


@attrs.frozen
class Loaded:
    """The registrations of one plugin."""

    info: PluginInfo
    codecs: list[CodecSpec] = attrs.field(factory=list)
    transports: list[TransportSpec] = attrs.field(factory=list)
    schema_registries: list[SchemaRegistrySpec] = attrs.field(factory=list)
    type_maps: list[TypeMap] = attrs.field(factory=list)


class PluginLoader:
    """Loads each entry point once; a failure is kept in its :class:`PluginInfo`."""

    def __init__(self, entry_points: Iterable[metadata.EntryPoint] | None = None) -> None:
        self.infos: dict[str, PluginInfo] = {}
        self._entry_points = _distinct(
            installed(hookspecs.PROJECT, self._note_unreadable)
            if entry_points is None
            else entry_points
        )
        self._disabled = {
            name.strip() for name in os.environ.get("CDCFMT_DISABLED_PLUGINS", "").split(",")
        } - {""}
        self._strict = os.environ.get("CDCFMT_STRICT_PLUGINS", "") not in ("", "0")
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._pending = list(self._entry_points)

    def _note_unreadable(self, dist: metadata.Distribution, error: Exception) -> None:
        if f"[{hookspecs.PROJECT}]" in (dist.read_text("entry_points.txt") or ""):
            info = PluginInfo("?", *name_of(dist))
            info.error = BrokenPluginError(
                f"entry_points.txt of {info.package} cannot be read: {describe(error)}",
                f"reinstall or uninstall {info.dist}",
            )
            self.infos[info.dist] = info

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
        dist, version = name_of(entry_point.dist)
        key = f"{dist}:{entry_point.name}"
        if key in self.infos:
            return Loaded(self.infos[key])
        info = self.infos[key] = PluginInfo(entry_point.name, dist, version)
        if {entry_point.name, dist} & self._disabled:
            info.disabled = True
            return Loaded(info)
        try:
            plugin = entry_point.load()
        except INTERRUPTIONS:
            raise
        except SystemExit as error:
            return self._reject(info, ImportError(f"it exits: {error}"))
        except BaseException as error:
            return self._reject(info, error)
        if self._manager.is_registered(plugin):
            return Loaded(info)
        names = {
            other.name.lower() for other in self._entry_points if name_of(other.dist)[0] == dist
        }
        return self._ask(plugin, info, names)

    def _ask(self, plugin: object, info: PluginInfo, names: set[str] | None) -> Loaded:
        # Call one plugin at a time, so that results and errors have an owner.
        pluginname = f"{info.dist}:{info.entry_point}"
        try:
            self._manager.register(plugin, name=pluginname)
            _check_hooks(plugin, self._manager)
            others = [p for n, p in self._manager.list_name_plugin() if n != pluginname]
            self._manager.check_pending()
            ask = self._manager.subset_hook_caller
            codecs = _flatten(ask("cdcfmt_register_codecs", others)())
            transports = _flatten(ask("cdcfmt_register_transports", others)())
            registries = _flatten(ask("cdcfmt_register_schema_registries", others)())
            type_maps = _flatten(ask("cdcfmt_register_type_maps", others)())
            _check_results(codecs, CodecSpec)
            _check_results(transports, TransportSpec)
            _check_results(registries, SchemaRegistrySpec)
            _check_results(type_maps, TypeMap)
            if not (codecs or transports or registries or type_maps):
                raise TypeError("its hooks return nothing: return lists of its specs")
            if names is not None:
                _check_names([spec.name for spec in (*codecs, *transports, *registries)], names)
                _check_names([item.overrides or item.name for item in type_maps], names)
            codecs = [guarded(spec, info) for spec in codecs]
            transports = [guarded(spec, info) for spec in transports]
            registries = [guarded(spec, info) for spec in registries]
        except INTERRUPTIONS:
            raise
        except BaseException as error:
            if self._manager.has_plugin(pluginname):
                self._manager.unregister(name=pluginname)
            return self._reject(info, error)
        info.codecs = tuple(spec.name for spec in codecs)
        info.transports = tuple(spec.name for spec in transports)
        info.schema_registries = tuple(spec.name for spec in registries)
        info.type_maps = tuple(type_map.name for type_map in type_maps)
        return Loaded(info, codecs, transports, registries, type_maps)

    def _reject(self, info: PluginInfo, cause: BaseException) -> Loaded:
        error: PluginError
        if isinstance(cause, PluginApiError):
            error = PluginApiError(f"{info.package} was written for {cause.problem}", cause.remedy)
        else:
            error = BrokenPluginError(
                f"plugin {info.entry_point!r} of {info.package} could not be loaded: "
                f"{describe(cause)}",
                info.remedy,
            )
        error.__cause__ = cause
        info.error = error
        if self._strict:
            raise error
        return Loaded(info)


def _check_hooks(plugin: object, manager: pluggy.PluginManager) -> None:
    """:raises TypeError: if the plugin has no hook, or one of an unknown name."""
    callers = manager.get_hookcallers(plugin) or []
    for caller in callers:
        if caller.name not in HOOKS:
            raise TypeError(
                f"unknown hook {caller.name!r}{did_you_mean(caller.name, HOOKS)} (the hooks of "
                f"this cdcfmt-core: {join_names(HOOKS)})"
            )
    if not callers:
        # A hook without its mark, or with a mark of another project.
        others = (name for name in dir(plugin) if name not in HOOKS)
        near = (f"; {name}{mean}" for name in others if (mean := did_you_mean(name, HOOKS)))
        raise TypeError(
            f"it has no hook: mark one of {join_names(HOOKS)} with "
            f"@cdcfmt_core.hookimpl{next(near, '')}"
        )


_RETURNS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "open_decoder": (callable, "the function that decodes a message"),
    "scan_schemas": (callable, "a function that finds the table schemas in a message"),
    "scan_statements": (callable, "a function that finds the statements in a message"),
    "open_encoder": (
        lambda opened: isinstance(opened, Encoder),
        "an object of a subclass of Encoder",
    ),
    "open_layouts": (lambda found: isinstance(found, Sequence), "a list of Layout"),
}
"""Functions of a :class:`CodecSpec`, with a check and a description of what they return."""

_GUARDED = (
    *_RETURNS, "explain", "diagnose", "open_source", "open_sink", "open_drain", "options_of_url",
    "open", "sniff_schema",
)  # fmt: skip

_Spec = TypeVar("_Spec", CodecSpec, TransportSpec, SchemaRegistrySpec)
_KINDS = {TransportSpec: "transport", SchemaRegistrySpec: "schema registry"}


def guarded(spec: _Spec, info: PluginInfo) -> _Spec:
    """A spec whose functions name the plugin when they fail."""
    what = _KINDS.get(type(spec), "format")
    changes: dict[str, Any] = {
        name: Guarded(function, f"{name} of {what} {spec.name!r} ({info.package})", info.remedy)
        for name in _GUARDED
        if (function := getattr(spec, name, None)) is not None
    }
    if isinstance(spec, CodecSpec):
        changes["package"] = info.package
    return attrs.evolve(spec, **changes)


@attrs.frozen
class Guarded:
    """A function of a plugin; its failure is a :class:`BrokenPluginError` that names the plugin.

    Other errors of cdcfmt, such as an :class:`~cdcfmt_core.errors.OptionError`, are answers.
    """

    function: Callable[..., Any]
    name: str
    remedy: str

    def __call__(self, *arguments: Any) -> Any:
        with self._named():
            returned = self.function(*arguments)
        field = self.name.partition(" ")[0]
        if field in ("explain", "diagnose"):
            return self._each(returned)
        is_valid, what = _RETURNS.get(field, (lambda returned: True, ""))
        if not is_valid(returned):
            raise BrokenPluginError(
                f"{self.name} returned {show(returned)}: return {what}", self.remedy
            )
        return returned

    def load(self) -> None:
        """Import the function, if it is given by its path.

        :raises BrokenPluginError: if it cannot be imported.
        """
        with self._named():
            load(self.function)

    def _each(self, returned: Iterable[Any]) -> Iterator[Any]:
        with self._named():
            yield from returned

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except INTERRUPTIONS:
            raise
        except BaseException as error:
            if isinstance(error, CdcfmtError) and not isinstance(error, PluginError):
                raise
            problem = f"{self.name} failed: {describe(error)}"
            raise BrokenPluginError(problem, self.remedy) from error


def _distinct(entry_points: Iterable[metadata.EntryPoint]) -> list[metadata.EntryPoint]:
    """Sorted entry points, without duplicates of packages found twice on the path."""
    found: dict[tuple[str, str, str], metadata.EntryPoint] = {}
    for entry_point in entry_points:
        dist, _ = name_of(entry_point.dist)
        found.setdefault((entry_point.name, dist, entry_point.value), entry_point)
    return [found[key] for key in sorted(found)]


def _flatten(results: Iterable[Iterable[Any]]) -> list[Any]:
    for result in results:
        if isinstance(result, CodecSpec | TransportSpec | SchemaRegistrySpec | TypeMap):
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
class Registration:
    """A registration under a name, and its plugin."""

    value: Any
    plugin: PluginInfo


class Registrations(dict[str, list[Registration]]):
    """The registrations of each name.

    - ``what``: the kind of thing, for error texts
    - ``owners``: first-party names, each with its package; its registration replaces all others
    """

    def __init__(
        self,
        what: str,
        owners: Mapping[str, str] = {},
        registered: Mapping[str, list[Registration]] = {},
    ) -> None:
        super().__init__(registered)
        self._what = what
        self.owners = owners

    def add(self, name: str, value: Any, plugin: PluginInfo) -> None:
        self.setdefault(name, []).append(Registration(value, plugin))

    def drop(self, dist: str) -> None:
        """Remove the registrations of a distribution's plugins."""
        for name in list(self):
            self[name] = [each for each in self[name] if each.plugin.dist != dist]
            if not self[name]:
                del self[name]

    def valid(self, name: str) -> list[Registration]:
        """The registrations of a name, or only that of its first-party package."""
        registered = self.get(name, [])
        return [r for r in registered if r.plugin.dist == self.owners.get(name)] or registered

    def get_unique(self, name: str) -> Any:
        """The value of this name, or None.

        :raises DuplicateFormatError: if several plugins register it; names their packages.
        """
        registered = self.valid(name)
        if len(registered) > 1:
            raise duplicate(self._what, name, registered)
        return registered[0].value if registered else None

    def usable(self) -> dict[str, Any]:
        """The values of names that only one plugin may have, by their own names, sorted."""
        valid = {name: self.valid(name) for name in sorted(self)}
        return {each[0].value.name: each[0].value for each in valid.values() if len(each) == 1}

    def conflicts(self) -> list[DuplicateFormatError]:
        """An error for every name that more than one plugin registers."""
        return [
            duplicate(self._what, name, registered, self.valid(name))
            for name, registered in sorted(self.items())
            if len(registered) > 1
        ]


def duplicate(
    what: str, name: str, registered: list[Registration], valid: list[Registration] | None = None
) -> DuplicateFormatError:
    """The error for a name that several plugins register; ``valid``: those that count."""
    dists = " and ".join(each.plugin.package for each in registered)
    used = f"; that of {valid[0].plugin.package} is used" if valid and len(valid) == 1 else ""
    return DuplicateFormatError(
        f"{what} {name!r} is registered by {dists}{used}",
        "uninstall one, or disable one with CDCFMT_DISABLED_PLUGINS",
    )


class ResolvedTypes:
    """The type of a type text: by overrides that are not broken, the map itself, else Unknown."""

    def __init__(self, maps: list[Registration]) -> None:
        self._maps = maps
        self.name: str = maps[-1].value.name
        self._find_short = functools.lru_cache(maxsize=4096)(self._search)

    def __call__(self, text: str) -> LogicalType:
        return self.find(text)[0]

    def find(self, text: str) -> tuple[LogicalType, TypeMap | None]:
        """The type, and the map that knows it."""
        # Long texts are not cached, so that hostile ones cannot fill the memory.
        return (self._find_short if len(text) <= 2_000 else self._search)(text)

    def _search(self, text: str) -> tuple[LogicalType, TypeMap | None]:
        for each in self._maps:
            try:
                if (logical := resolved(each, text)) is not None:
                    return logical, each.value
            except BrokenPluginError as error:
                if each is self._maps[-1]:
                    raise
                overridden = each.value.overrides
                warn_broken(f"an override of type map {overridden} is left out:", str(error))
        return Unknown(text), None


def resolved(type_map: Registration, text: str) -> LogicalType | None:
    """The result of one type map for a type text.

    :raises BrokenPluginError: if it fails, or returns anything but a logical type or None.
    """
    name = f"type map {type_map.value.name!r} of {type_map.plugin.package}"
    try:
        logical = type_map.value.resolve(text)
    except INTERRUPTIONS:
        raise
    except BaseException as error:
        raise BrokenPluginError(
            f"{name} failed for {show(text)}: {describe(error)}", type_map.plugin.remedy
        ) from error
    if logical is None or isinstance(logical, LogicalType):
        return logical
    raise BrokenPluginError(
        f"{name} maps {show(text)} to {show(logical)}, which is not a logical type such as Bool()",
        type_map.plugin.remedy,
    )
