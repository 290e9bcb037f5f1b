"""The plugins of docs/hooks.md, installed and run unchanged."""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from support.doc_snippets import files_in_snippets, snippets
from support.installed_plugins import DIALECTS

from cdcfmt_core.__main__ import report
from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder
from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.registry import Registry
from cdcfmt_core.types import Bool, Int, Text
from cdcfmt_testing import Case, Subject
from cdcfmt_testing.checks import golden, malformed, meaning

HOOKS = "docs/hooks.md"
MESSAGE = {
    "acme": 1,
    "table": "shop.orders",
    "types": {"id": "bigint", "name": "varchar(20)"},
    "key": ["id"],
    "op": "U",
    "old": {"id": 1, "name": "a"},
    "new": {"id": 1, "name": None},
    "ms": 1700000000000,
}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry that sees the packages of the document, laid out as pip installs them."""
    files = files_in_snippets(HOOKS)
    projects = [tomllib.loads(s.code) for s in snippets(HOOKS) if s.language == "toml"]
    assert [*files] == ["pyproject.toml", "cdcfmt_acme.py", "cdcfmt_tinyint1.py"]
    assert len(projects) == 2
    for number, project in enumerate(projects):
        info = tmp_path / f"example_{number}-0.1.0.dist-info"
        info.mkdir()
        name = project["project"].get("name", "cdcfmt-tinyint1")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        entries = project["project"]["entry-points"]["cdcfmt"]
        lines = ["[cdcfmt]", *(f"{key} = {value}" for key, value in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
    for name, text in files.items():
        if name.endswith(".py"):
            (tmp_path / name).write_text(text, encoding="utf-8")
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    found = metadata.distributions(path=[str(tmp_path)])
    own = [entry for dist in found for entry in dist.entry_points]
    return Registry([*DIALECTS, *own])


def decode(registry: Registry, value: bytes, protocol: str = "auto") -> list[Any]:
    options = validate({"protocol": protocol}, DECODING_OPTIONS, owner="test")
    own = {
        option.name: option.default
        for codec in registry.codecs().values()
        for option in codec.options
    }
    decoder = MessageDecoder(options, own, EventFilter(), registry=registry)
    return decoder.decode(Message(None, value))


def test_the_plugin_is_listed(registry: Registry) -> None:
    text, healthy = report(registry)
    assert healthy, text
    assert "acme-json" in text
    assert "cdcfmt-acme 0.1.0" in text
    assert "type map mysql is overridden by tinyint1-is-bool (cdcfmt-tinyint1 0.1.0)" in text


@pytest.mark.parametrize("protocol", ["auto", "acme-json"])
def test_the_plugin_decodes(registry: Registry, protocol: str) -> None:
    (event,) = decode(registry, json.dumps(MESSAGE, separators=(",", ":")).encode(), protocol)
    assert isinstance(event, RowChange)
    assert (event.op, event.table.database, event.table.table) == ("update", "shop", "orders")
    assert [column.type for column in event.table.columns] == [Int(64), Text()]
    assert event.table.key_columns == ("id",)
    assert event.before is not None
    assert event.after is not None
    assert event.before.values == {"id": 1, "name": "a"}
    assert event.after.values == {"id": 1, "name": None}
    assert event.source_time == 1700000000000000


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("op", {"op": "?"}),
        ("new.id", {"new": {"id": "x"}}),
        ("old.id", {"types": None}),
        ("types.id", {"types": {"id": 5}}),
        ("new", {"new": None}),
        ("table", {"table": []}),
    ],
)
def test_bad_messages_are_corrupt(registry: Registry, field: str, change: dict[str, Any]) -> None:
    value = json.dumps({**MESSAGE, **change}, separators=(",", ":")).encode()
    (event,) = decode(registry, value)
    assert isinstance(event, Corrupt)
    assert event.error.field == field


def test_the_plugin_passes_the_kit(registry: Registry) -> None:
    wires = [{**MESSAGE, "op": op} for op in "IUD"]
    messages = [Message(None, json.dumps(w, separators=(",", ":")).encode()) for w in wires]
    case = Case("rows", tuple(messages))
    subject = Subject(registry.get_codec("acme-json"), [case])
    golden.check_case(subject, case)
    golden.check_kinds(subject)
    meaning.check_absent(subject)
    meaning.check_fields(subject)
    malformed.check_cut_off(subject)
    malformed.check_flipped(subject)
    malformed.check_neighbours(subject)
    malformed.check_wrong_types(subject)
    malformed.check_any_json(subject)


def test_blocks_print_what_stands_below(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [snippet for snippet in snippets(HOOKS) if snippet.runs]
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block.code, block.id, "exec"), {})
        assert capsys.readouterr().out == block.prints, block.id


def test_the_type_map_overrides(registry: Registry) -> None:
    resolve = registry.get_type_map("mysql")
    assert resolve("tinyint(1)") == Bool()
    assert resolve("bigint") == Int(64)


def test_third_party_type_map_applies_to_every_format(registry: Registry) -> None:
    """The types of canal-json with the override's package installed."""
    installed = metadata.entry_points(group="cdcfmt", name="canal-json")
    entry_points = [*registry._loader._entry_points, *installed]
    wire = {
        "database": "shop", "table": "items", "type": "INSERT", "isDdl": False, "es": 1, "ts": 1,
        "pkNames": ["id"], "mysqlType": {"id": "int", "paid": "tinyint(1)", "n": "tinyint(4)"},
        "sqlType": {"id": 4, "paid": -7, "n": -6}, "old": None,
        "data": [{"id": "1", "paid": "1", "n": "1"}, {"id": "2", "paid": "0", "n": None}],
    }  # fmt: skip
    value = json.dumps(wire, separators=(",", ":")).encode()
    for entries, first, second in (
        (entry_points, True, False),
        (installed, 1, 0),
    ):
        events = decode(Registry([*DIALECTS, *entries]), value, "canal-json")
        images = [event.after.values["paid"] for event in events]
        assert [(type(paid), paid) for paid in images] == [
            (type(first), first), (type(second), second)
        ]  # fmt: skip
        assert events[0].after.values["n"] == 1
