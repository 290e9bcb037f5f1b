"""The installed formats, transports, type maps and overrides, and the broken plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from cdcfmt_core.codec import CodecSpec, DecoderContext
from cdcfmt_core.encoder import EncoderContext
from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Message
from cdcfmt_core.known import packages
from cdcfmt_core.plugins import Guarded, PluginInfo
from cdcfmt_core.recognition import confidence
from cdcfmt_core.registry import Registry
from cdcfmt_core.schema_scan import SCANS
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.services import service
from cdcfmt_core.transport import TransportSpec

NOTHING = f"no format is installed; for example: pip install {min(packages('formats').values())}"


@attrs.frozen
class ListedFormat:
    """A usable format, with its package and version."""

    spec: CodecSpec
    package: str
    version: str


@attrs.frozen
class Listing:
    """All installed plugins, with their problems; ``notes``: remarks."""

    formats: list[ListedFormat]
    transports: list[str]
    type_maps: list[str]
    notes: list[str]
    problems: list[CdcfmtError]


def list_installed(registry: Registry) -> Listing:
    """All registrations of the registry's entry points, and their failures.

    Opens everything that a plugin declares, so that a failure shows here first.
    """
    plugins = registry.plugins()
    owners = {name: plugin for plugin in plugins for name in plugin.codecs}
    unknown = PluginInfo("?", "?", "")
    formats = []
    problems: list[CdcfmtError] = [*registry.failures(), *registry.check_type_maps()]
    for spec in registry.codecs().values():
        owner = owners.get(spec.name, unknown)
        broken = list(_try_reading(spec, registry))
        if not broken:
            formats.append(ListedFormat(spec, owner.dist, owner.version))
        problems += [*broken, *_try_more(spec)]
    transports = registry.transports()
    for transport in transports.values():
        problems += _try_importing(transport)
    named = [
        f"{name} ({plugin.package})"
        for plugin in plugins
        for name in plugin.transports
        if name in transports
    ]
    maps = [f"{name} ({plugin.dist})" for plugin in plugins for name in plugin.type_maps]
    disabled = [f"disabled: {p.entry_point} of {p.dist}" for p in plugins if p.disabled]
    return Listing(formats, named, maps, registry.overrides() + disabled, problems)


_PROBES = (b"", b"\x00", b"{}", b'{"a": 1}', b"[]", b"a,b", bytes(range(256)))
"""Values that no ``sniff`` fails on."""


def _try_reading(spec: CodecSpec, registry: Registry) -> Iterator[CdcfmtError]:
    """The failures for which a format cannot be read."""
    own = {option.name: option.default for option in spec.options}
    for name in ("open_decoder", *SCANS):
        open_it = getattr(spec, name)
        try:
            if open_it is not None:
                open_it(own, DecoderContext(registry.type_map_for(spec, None), SchemaStore()))
        except CdcfmtError as error:
            yield error


def _try_more(spec: CodecSpec) -> Iterator[CdcfmtError]:
    """The failures of a format's other functions."""
    failures: list[CdcfmtError] = []
    for value in _PROBES:
        confidence(spec, Message(None, value), failures.append)
    yield from failures[:1]
    calls: list[tuple[Any, tuple[Any, ...]]] = []
    if spec.open_layouts is not None:
        own = {option.name: option.default for option in spec.options}
        calls.append((spec.open_layouts, (own,)))
    if spec.open_encoder is not None:
        own = {option.name: option.default for option in spec.encode_options}
        calls.append((spec.open_encoder, (own, EncoderContext(service("large-messages")()))))
    for function, arguments in calls:
        try:
            function(*arguments)
        except CdcfmtError as error:
            yield error
    yield from _try_importing(spec)


def _try_importing(spec: CodecSpec | TransportSpec) -> Iterator[CdcfmtError]:
    """The functions that cannot be imported, and cannot be called without an address or message."""
    for name in (
        "explain",
        "diagnose",
        "open_source",
        "open_input",
        "open_sink",
        "open_drain",
        "options_of_url",
    ):
        function = getattr(spec, name, None)
        try:
            if isinstance(function, Guarded):
                function.load()
        except CdcfmtError as error:
            yield error
