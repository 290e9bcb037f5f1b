"""The installed formats, transports, type maps and overrides, and the broken plugins."""

from __future__ import annotations

import attrs

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.plugins import PluginInfo
from cdcfmt_core.registry import Registry

NOTHING = "no format is installed; for example: pip install cdcfmt-canal-json"


@attrs.frozen
class ListedFormat:
    """A usable format, with its package and version."""

    spec: CodecSpec
    package: str
    version: str

    @property
    def writes(self) -> bool:
        return self.spec.open_encoder is not None


@attrs.frozen
class Listing:
    """All installed plugins; ``problems``: error texts with remedies; ``notes``: remarks."""

    formats: list[ListedFormat]
    transports: list[str]
    type_maps: list[str]
    notes: list[str]
    problems: list[str]


def list_installed(registry: Registry) -> Listing:
    """All registrations of the registry's entry points, and their failures."""
    plugins = registry.plugins()
    owners = {name: plugin for plugin in plugins for name in plugin.codecs}
    unknown = PluginInfo("?", "?", "")
    formats = []
    for spec in registry.codecs().values():
        owner = owners.get(spec.name, unknown)
        formats.append(ListedFormat(spec, owner.dist, owner.version))
    transports = [
        f"{name} ({plugin.dist} {plugin.version})"
        for plugin in plugins
        for name in plugin.transports
        if name in registry.transports()
    ]
    maps = [f"{name} ({plugin.dist})" for plugin in plugins for name in plugin.type_maps]
    problems = registry.conflicts()
    problems += [f"broken: {plugin.error}" for plugin in plugins if plugin.error is not None]
    disabled = [f"disabled: {p.entry_point} of {p.dist}" for p in plugins if p.disabled]
    return Listing(
        formats,
        ["files (cdcfmt-core)", *transports],
        ["mysql (cdcfmt-core)", *maps],
        registry.overrides() + disabled,
        problems,
    )
