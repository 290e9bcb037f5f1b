"""``cdcfmt formats``."""

from __future__ import annotations

import pytest
from support.cli_tools import run, run_json
from support.installed_plugins import DIALECTS

from cdcfmt_cli.commands import formats
from cdcfmt_core import CodecSpec, Registry, default_registry, hookimpl


def test_every_format_with_its_package() -> None:
    listing = run_json("formats", "--json")
    assert {item["name"] for item in listing["formats"]} == set(default_registry().codecs())
    assert all(item["package"] == f"cdcfmt-{item['name']}" for item in listing["formats"])
    text = run("formats").stdout
    for spec in default_registry().codecs().values():
        assert spec.name in text
        assert spec.summary in text


def test_one_format_with_its_options() -> None:
    text = run("formats", "debezium").stdout
    for option in default_registry().get_codec("debezium").options:
        assert option.name in text
    found = run_json("formats", "debezium", "--json")
    writing = default_registry().get_codec("debezium").encode_options
    assert [each["name"] for each in found["encode_options"]] == [each.name for each in writing]
    names = [option["name"] for option in found["options"]]
    assert names == [option.name for option in default_registry().get_codec("debezium").options]


def test_missing_format() -> None:
    result = run("formats", "maxwell")
    assert result.exit_code == 2
    assert "error: unknown format 'maxwell'; installed: canal-json" in result.stderr


def test_broken_plugins_and_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        @hookimpl
        def cdcfmt_register_codecs(self) -> list[CodecSpec]:
            raise OSError("no disk")

    registry = Registry(entry_points=DIALECTS)
    registry.register(Broken(), "bad")
    monkeypatch.setattr(formats, "default_registry", lambda: registry)
    result = run("formats")
    assert result.exit_code == 1
    assert "could not be loaded: OSError: no disk" in result.stdout
    assert "pip install cdcfmt-canal-json" in result.stdout
