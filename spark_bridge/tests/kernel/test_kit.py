"""The conformance kit holds a codec's layouts against its decoder, and catches false ones."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from support.golden_encoding import golden_case
from support.workspace import ROOT

from cdcfmt_cli.template import create_plugin
from cdcfmt_core import Option, default_registry, hookimpl
from cdcfmt_core.errors import BrokenPluginError
from cdcfmt_testing import Subject
from cdcfmt_testing.cases import load_cases
from cdcfmt_testing.checks import golden
from cdcfmt_toolkit.layout import Layout
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

PLUGIN = ROOT / "plugins/formats/canal-json/src/cdcfmt_canal_json"

MUTANTS = {
    "none": ("", ""),
    "times taken for each other": (
        '"es": "source_time",\n    "ts": "other_time"',
        '"es": "other_time",\n    "ts": "source_time"',
    ),
    "updates that are inserts": ("ops=OP_OF_TYPE", 'ops={**OP_OF_TYPE, "UPDATE": "insert"}'),
    "another unit of time": ("(1 << 45) - 1, 1000)", "(1 << 45) - 1, 1)"),
    "a layout that no message has": ("_TICDC_BEGINS = b'{\"id\":0,'", "_TICDC_BEGINS = b'['"),
    "a member that is not declared": ('    "pkNames": "same",\n', ""),
    "an option that only the decoder knows": (
        'if options["deleteOnlyOutputHandleKeyColumns"]:',
        "if False:",
    ),
}
"""Bug → the text of a module, and what it becomes."""
_LAYOUT = Layout({"type": "op"}, {"INSERT": "insert"}, lambda *_: {}, max_events=-1)
REASONS = {
    "a member that is not declared": "unknown member, at byte [0-9]+ of a "
    "message's value: .*pkNames",
    "an option that only the decoder knows": "with deleteOnlyOutputHandleKeyColumns=true: ",
}


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """What is registered here is forgotten behind it."""
    default_registry.cache_clear()
    yield
    default_registry.cache_clear()


@pytest.mark.parametrize("bug", MUTANTS)
def test_false_layouts_are_caught(
    bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> None:
    package = f"kernel_{list(MUTANTS).index(bug)}"
    name = package.replace("_", "-")
    (tmp_path / package).mkdir()
    old, new = MUTANTS[bug]
    sown = 0
    for path in PLUGIN.glob("*.py"):
        text = path.read_text(encoding="utf-8").replace("cdcfmt_canal_json", package)
        text = text.replace('name="canal-json"', f'name="{name}"').replace('("canal",)', "()")
        if old and old in text:
            text = text.replace(old, new)
            sown += 1
        (tmp_path / package / path.name).write_text(text, encoding="utf-8")
    assert sown == bool(old), f"{bug}: sow it elsewhere"
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    plugin = importlib.import_module(package)
    info = default_registry().register(plugin, package)
    assert info.error is None
    subject = Subject(
        default_registry().get_codec(name), [golden_case("canal-json", "default", 60)]
    )
    if not old:
        golden.check_kernel(subject)
        return
    with pytest.raises(AssertionError, match=REASONS.get(bug)):
        golden.check_kernel(subject)


def test_minimal_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> None:
    """The examples of the docs, and what the template makes."""
    folders = {"acme-json": create_plugin("acme-json", tmp_path)}
    folders |= {name: ROOT / f"docs/example/cdcfmt-{name}" for name in ("maxwell", "dms")}
    for name, folder in folders.items():
        monkeypatch.syspath_prepend(folder / "src")
        importlib.invalidate_caches()
        plugin = importlib.import_module(f"cdcfmt_{name.replace('-', '_')}")
        assert default_registry().register(plugin, name).error is None
        cases = load_cases(folder / "cases")
        golden.check_kernel(Subject(default_registry().get_codec(name), cases))


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("layouts", "Extra(name, ", "Extra(name.upper(), ", '{"COMMIT":.* {"commit"'),
        ("layouts", "ops=OPS", 'ops=OPS | {"bootstrap-insert": "insert"}', "op of row"),
        ("layouts", "return [", "return []\n    [", "returns no layout"),
        ("layouts", "return [", "return (0 for _ in [0]),\n    [", "return a list of Layout"),
        ("layouts", '"old": "before"', '"old": "befor"', "role 'befor'; did you mean before?"),
        ("layouts", "ops=OPS", 'ops={"insert": "i"}', "ops has 'i' for 'insert', not insert, "),
        ("layouts", "1_000_000, 1_000_000)", "1_000_000)", "times is .*, not three integers"),
        ("layouts", 'row="after"', 'row="data"', "deleted_row is 'data', not before or after"),
        ("layouts", "encodings=encodings", "encodings={}", "encodings is {}, not a function"),
        ("layouts", "keyed=True", 'column_types="types"', "column_types is 'types', no `same`"),
        ("layouts", "(value, table)", "(table)", "no plan for the kernel: TypeError"),
        ("layouts", "extra=extra", 'extra=lambda _: {("no",): Extra("no")}', "no member no"),
        ("layouts", "extra=extra", 'extra=lambda _: {"xid": Extra("xid")}', r"tuple, \('xid',\)"),
        (
            "types",
            "plan(schema, context,",
            "plan(schema, __import__('attrs').evolve(context, "
            "projection=type(context.projection)()),",
            "id of row .* by the kernel",
        ),
    ],
)
def test_mistakes_of_authors_are_reported(
    file: str,
    old: str,
    new: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh_registry: None,
) -> None:
    """In `extra` and operations, which events alone show, and in reading more than the kernel."""
    name = "acme-json" if file == "types" else "maxwell"
    folder = ROOT / "docs/example/cdcfmt-maxwell"
    if file == "types":
        folder = create_plugin(name, tmp_path)
    package = f"mistaken_{abs(hash((old, new)))}"
    (source,) = folder.glob("src/cdcfmt_*")
    (tmp_path / package).mkdir()
    for path in source.glob("*.py"):
        text = path.read_text(encoding="utf-8").replace(source.name, package)
        if path.stem == file:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / package / path.name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert default_registry().register(importlib.import_module(package), name).error is None
    subject = Subject(default_registry().get_codec(name), load_cases(folder / "cases"))
    with pytest.raises((AssertionError, BrokenPluginError, ValueError), match=reason):
        golden.check_kernel(subject)


@pytest.mark.parametrize("layouts", [None, 7, [_LAYOUT], ()])
def test_failing_layouts_lose_no_row(
    layouts: Any, caplog: pytest.LogCaptureFixture, fresh_registry: None
) -> None:
    spec = default_registry().get_codec("canal-json")
    broken = attrs.evolve(spec, name="broken", aliases=(), open_layouts=lambda options: layouts)
    plugin = ModuleType("broken")
    vars(plugin)["cdcfmt_register_codecs"] = hookimpl(lambda: [broken])
    assert default_registry().register(plugin, "broken").error is None
    messages = golden_case("canal-json", "default", 60).messages
    options = parsed({"protocol": "broken"})
    result = check_equal(messages, events_schema(options), options)
    assert result.rows.num_rows
    assert not result.by_kernel
    assert sum("layout" in message for message in caplog.messages) == (layouts != ())


@pytest.mark.parametrize("name", ["mode", "images", "subscribe", "compression"])
def test_source_and_sink_options_are_accepted(name: str) -> None:
    option = Option(name, "What it means for this format.")
    spec = default_registry().get_codec("canal-json")
    field = "encode_options" if name == "compression" else "options"
    with pytest.raises(ValueError, match=f"names that every format has: '{name}';"):
        attrs.evolve(spec, **{field: (option,)})


def test_kit_without_the_bridge_reports_a_skipped_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark_cdcfmt.testing", None)
    subject = Subject(default_registry().get_codec("canal-json"), [])
    with pytest.raises(golden.NotChecked, match=r"NOT CHECKED.*pip install \"pyspark-cdcfmt"):
        golden.check_kernel(subject)
    # A format without layouts needs no check.
    without = attrs.evolve(default_registry().get_codec("canal-json"), open_layouts=None)
    golden.check_kernel(Subject(without, []))


def dms_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encodings: str) -> Subject:
    """DMS as an author may extend it by a type N, with rows of many numbers."""
    source = ROOT / "docs/example/cdcfmt-dms/src/cdcfmt_dms"
    package = f"numbers_{abs(hash(encodings))}"
    changes = {
        "schemas": [
            ('    "STRING": Text(),', '    "N": Decimal(),\n    "STRING": Text(),'),
            ("    Text: Enc", '    Decimal: Encoding("json-number"),\n    Text: Enc'),
            ("import Bool, Date, Float", "import Bool, Date, Decimal, Float"),
        ],
        "layouts": [("return encodings_of(table)", f"return {encodings}")],
    }
    (tmp_path / package).mkdir()
    for path in source.glob("*.py"):
        text = path.read_text(encoding="utf-8").replace(source.name, package)
        for old, new in changes.get(path.stem, []):
            assert old in text, (path, old)
            text = text.replace(old, new, 1)
        (tmp_path / package / path.name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert default_registry().register(importlib.import_module(package), "dms").error is None
    (case,) = (each for each in load_cases(source.parents[1] / "cases") if each.name == "changes")
    control, first = case.messages[1], case.messages[2]
    assert control.value is not None
    assert first.value is not None
    types = control.value.replace(
        b'"age":{"nullable":true,"type":"INT32"}', b'"age":{"type":"NUMERIC"}'
    )
    types = types.replace(b'"name":{"nullable":true,"type":"STRING"}', b'"name":{"type":"ODD"}')
    rows = [
        first.value.replace(b'"age":30', b'"age":' + number).replace(b'"John"', number)
        for number in (
            b"null",
            b"1.50",
            b"12345678901234567890.123456789012345678",
            b"1E-7",
            b"18446744073709551616",
            b"-0.5",
            b"1.5e3",
            b"7",
            b"null",
            b"2.25",
        )
    ]
    messages = [attrs.evolve(control, value=types)]
    messages += [attrs.evolve(first, value=value, offset=at) for at, value in enumerate(rows)]
    return Subject(
        default_registry().get_codec("dms"), [attrs.evolve(case, messages=tuple(messages))]
    )


def test_numbers_are_read_by_the_kernel(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh_registry: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    encodings = "encodings_of(table)"
    golden.check_kernel(dms_with_numbers(tmp_path, monkeypatch, encodings))
    assert "changes: read: 10 of 10 messages by the kernel" in capsys.readouterr().out


def test_value_refused_by_the_kernel_fails_the_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> None:
    """The kernel reads some messages, but none with a number."""
    encodings = (
        "{**encodings_of(table), "
        "'age': __import__('cdcfmt_toolkit.encodings').encodings.Encoding('json-boolean')}"
    )
    subject = dms_with_numbers(tmp_path, monkeypatch, encodings)
    with pytest.raises(AssertionError) as caught:
        golden.check_kernel(subject)
    text = str(caught.value)
    assert "refuses messages that fit the layout" in text
    assert "in the column 'age' (json-boolean), at byte 15 of a message's value: b'1.50" in text
    assert "changes: read: 2 of 10 messages by the kernel" in text
