"""The four hooks of cdcfmt, all that a plugin implements (docs/hooks.md).

A plugin is a module (or object) that an entry point of the group ``cdcfmt`` names::

    # pyproject.toml
    [project.entry-points.cdcfmt]
    acme-json = "cdcfmt_acme"  # the name of the format

    # cdcfmt_acme/__init__.py
    from cdcfmt_core import CodecSpec, hookimpl

    @hookimpl
    def cdcfmt_register_codecs():
        return [CodecSpec(name="acme-json", ...)]

Hooks return values and have no side effects.  Each is called once, when plugins are discovered,
never during decoding.  No hook is ``firstresult``: if two packages claim one name, the registry
must see both.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.schema_registry import SchemaRegistrySpec
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.types import TypeMap

PROJECT = "cdcfmt"
"""Name of the pluggy project and of the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:  # type: ignore[empty-body]
    """The formats of this package."""


@hookspec
def cdcfmt_register_transports() -> Iterable[TransportSpec]:  # type: ignore[empty-body]
    """The transports of this package."""


@hookspec
def cdcfmt_register_type_maps() -> Iterable[TypeMap]:  # type: ignore[empty-body]
    """The type maps of this package, including those that override another package's map."""


@hookspec
def cdcfmt_register_schema_registries() -> Iterable[SchemaRegistrySpec]:  # type: ignore[empty-body]
    """The kinds of schema registries of this package."""
