"""``python -m cdcfmt_core``."""

from __future__ import annotations

from importlib import metadata

import pytest
from support.installed_plugins import DIALECTS

from cdcfmt_core import CodecSpec, Encoder, Registry, TypeMap, __main__, hookimpl
from cdcfmt_core.events import Event, Message
from cdcfmt_core.types import Text


class Silent(Encoder):
    def encode(self, event: Event) -> list[Message]:
        return []


class Plugin:
    def __init__(self, name: str, overrides: str | None = None, encodes: bool = False) -> None:
        self.name = name
        self.overrides = overrides
        self.encodes = encodes

    @hookimpl
    def cdcfmt_register_codecs(self) -> list[CodecSpec]:
        return [
            CodecSpec(
                name=self.name,
                summary=f"the {self.name} format",
                spec_url="",
                open_decoder=lambda options, context: lambda message: [],
                open_encoder=(lambda options, context: Silent()) if self.encodes else None,
                sniff=lambda message: 0.0,
                emits=frozenset(),
                type_map="mysql",
                api_version=1,
            )
        ]

    @hookimpl
    def cdcfmt_register_type_maps(self) -> list[TypeMap]:
        if self.overrides is None:
            return []
        return [TypeMap(f"{self.name}-types", {"a": Text()}.get, overrides=self.overrides)]


def registry(**plugins: object) -> Registry:
    files = metadata.entry_points(group="cdcfmt", name="files")
    result = Registry(entry_points=[*DIALECTS, *files])
    for name, plugin in plugins.items():
        result.register(plugin, name)
    return result


def test_nothing_installed() -> None:
    text, healthy = __main__.report(registry())
    assert healthy
    assert text == (
        "FORMAT  PACKAGE  READS  WRITES  SUMMARY\n"
        "no format is installed; for example: pip install cdcfmt-canal-json\n"
        "\n"
        f"transports: files (cdcfmt-files {metadata.version('cdcfmt-files')})\n"
        "type maps: mysql (cdcfmt-mysql)"
    )


def test_formats_and_overrides() -> None:
    text, healthy = __main__.report(
        registry(acme=Plugin("acme-json", encodes=True), types=Plugin("b", overrides="mysql"))
    )
    assert healthy
    assert text == (
        "FORMAT     PACKAGE                READS  WRITES  SUMMARY\n"
        "acme-json  acme in this process   yes    yes     the acme-json format\n"
        "b          types in this process  yes    no      the b format\n"
        "\n"
        f"transports: files (cdcfmt-files {metadata.version('cdcfmt-files')})\n"
        "type maps: mysql (cdcfmt-mysql), b-types (types)\n"
        "type map mysql is overridden by b-types (types in this process)"
    )


def test_problems_make_the_report_unhealthy() -> None:
    class Broken:
        @hookimpl
        def cdcfmt_register_codecs(self) -> list[CodecSpec]:
            raise OSError("no disk")

    text, healthy = __main__.report(
        registry(one=Plugin("acme"), two=Plugin("acme"), bad=Broken(), fine=Plugin("fine"))
    )
    assert not healthy
    lines = text.splitlines()
    assert lines[1].startswith("fine ")
    assert sum("format 'acme' is registered by one" in line for line in lines) == 1
    assert (
        "broken: plugin 'bad' of bad in this process could not be loaded: OSError: no disk: "
        "update or uninstall bad, or set CDCFMT_DISABLED_PLUGINS=bad" in lines
    )


@pytest.mark.parametrize("plugins", [{}, {"one": Plugin("a"), "two": Plugin("a")}])
def test_the_exit_code(
    plugins: dict[str, Plugin],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(__main__, "default_registry", lambda: registry(**plugins))
    assert __main__.main() == (1 if plugins else 0)
    assert capsys.readouterr().out.startswith("FORMAT")


def test_arguments_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--json"]) == 2
    assert "takes no arguments" in capsys.readouterr().err
