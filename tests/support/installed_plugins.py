"""Plugins as pip leaves them: dist-info folders, modules, entry points."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from textwrap import dedent

import attrs

from cdcfmt_core import Registry

DIALECTS = tuple(metadata.entry_points(group="cdcfmt", name="mysql"))
"""Entry points that every registry of a test needs."""

HEADER = """
from cdcfmt_core import CodecSpec, Option, TransportSpec, TypeMap, hookimpl
from cdcfmt_core.events import Heartbeat
from cdcfmt_core.types import Text
calls = 0
"""


def codec_module(*names: str, more: str = "") -> str:
    """The source of a plugin that registers these formats; ``more`` are further arguments."""
    if "type_map=" not in more:
        more = f"type_map='mysql', {more}"
    return HEADER + dedent(
        f"""
        @hookimpl
        def cdcfmt_register_codecs():
            global calls
            calls += 1
            return [
                CodecSpec(
                    name=name, summary="of " + __name__, spec_url="", sniff=lambda message: 0.0,
                    open_decoder=lambda options, context: lambda message: [Heartbeat()],
                    emits=frozenset(), api_version=1, {more}
                )
                for name in {names!r}
            ]
        """
    )


def transport_module(*names: str, more: str = "open_source='x.y:z'") -> str:
    """The source of a plugin that registers these transports."""
    return HEADER + dedent(
        f"""
        @hookimpl
        def cdcfmt_register_transports():
            return [
                TransportSpec(**{{
                    "name": name, "title": name.title(), "summary": "of " + __name__,
                    "abilities": frozenset({{"keys"}}), "api_version": 1,
                    **dict({more}),
                }})
                for name in {names!r}
            ]
        """
    )


def type_map_module(name: str, overrides: str | None, answers: str) -> str:
    return HEADER + dedent(
        f"""
        @hookimpl
        def cdcfmt_register_type_maps():
            return [TypeMap({name!r}, {answers}.get, overrides={overrides!r})]
        """
    )


@attrs.frozen
class Site:
    """A folder of installed packages, as pip leaves them."""

    path: Path

    def install(
        self, dist: str, entry_points: dict[str, str], *, version: str = "1.0", **modules: str
    ) -> None:
        info = self.path / f"{dist.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n", encoding="utf-8"
        )
        lines = [f"{name} = {target}" for name, target in entry_points.items()]
        (info / "entry_points.txt").write_text(
            "\n".join(["[console_scripts]", "x = x:x", "[cdcfmt]", *lines]), encoding="utf-8"
        )
        for name, source in modules.items():
            (self.path / f"{name}.py").write_text(source, encoding="utf-8")

    def entry_points(self) -> list[metadata.EntryPoint]:
        return [
            entry_point
            for dist in metadata.distributions(path=[str(self.path)])
            for entry_point in dist.entry_points
            if entry_point.group == "cdcfmt"
        ]

    def registry(self) -> Registry:
        return Registry(entry_points=[*DIALECTS, *self.entry_points()])
