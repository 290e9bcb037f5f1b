"""The docs agree with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from support.doc_snippets import snippets
from support.doc_tables import render, tables
from support.workspace import ROOT

from cdcfmt_core import Option, default_registry, hookspecs
from cdcfmt_core.encoding import ENCODING_OPTIONS
from cdcfmt_core.options import OptionType
from cdcfmt_toolkit import wire_json
from pyspark_cdcfmt.option_groups import bridge_options
from pyspark_cdcfmt.write_options import output_options

DOCS = sorted(
    file
    for pattern in ("*.md", "docs/**/*.md", "plugins/*/*/*.md", "spark_bridge/*.md")
    for file in ROOT.glob(pattern)
    # `make site` copies pages to there.
    if "_build" not in file.parts
)
FORMATS, TRANSPORTS = (
    sorted(path for path in ROOT.glob(f"plugins/{group}/*") if path.name != "files")
    for group in ("formats", "transports")
)
PLUGINS = [*FORMATS, *TRANSPORTS]


def toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", tables(), ids=relative)
def test_generated_tables_are_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name, table in tables()[path].items():
        assert render(text, name, table) == text, "run make tables"


def test_every_hook_is_documented() -> None:
    hooks = [name for name, item in vars(hookspecs).items() if hasattr(item, "cdcfmt_spec")]
    assert len(hooks) == 4
    text = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    for hook in hooks:
        assert f"`{hook}()`" in text


def test_every_environment_variable_is_documented() -> None:
    text = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    code = "".join(
        (ROOT / f"cdcfmt_core/{name}.py").read_text(encoding="utf-8")
        for name in ("decoding", "plugins", "registry")
    )
    names = set(re.findall(r"CDCFMT_[A-Z_]+", code))
    assert len(names) >= 3
    for name in names:
        assert name in text


def test_every_helper_of_json_wires_is_documented() -> None:
    text = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    own = [
        name
        for name, item in vars(wire_json).items()
        if getattr(item, "__module__", None) == wire_json.__name__ and not name.startswith("_")
    ]
    assert "loads_exact" in own
    for name in own:
        assert f"| `{name}(" in text
        assert getattr(wire_json, name).__doc__
    table = text.partition("### JSON wires")[2].partition("### Options")[0]
    assert set(re.findall(r"^\| `(\w+)", table, re.MULTILINE)) == set(own)
    assert "`cdcfmt_core.types.MAX_TIMESTAMP`" in table
    for type_ in get_args(OptionType):
        assert f"| `{type_}`" in text


def test_every_option_is_documented() -> None:
    def missing(file: str, options: Any) -> list[str]:
        text = (ROOT / file).read_text(encoding="utf-8")
        return [option.name for option in options if f"| `{option.name}` |" not in text]

    assert missing("docs/options.md", bridge_options()) == []
    own = [option for option in output_options() if option not in ENCODING_OPTIONS]
    assert missing("docs/writing-options.md", own) == []
    for transport in default_registry().transports().values():
        assert missing("docs/options.md", transport.options) == []
        assert missing("docs/writing-options.md", transport.sink_options) == []
    for name, spec in default_registry().codecs().items():
        assert missing(f"docs/formats/{name}.md", spec.options) == []
        for option in spec.options:
            assert isinstance(option, Option)
            assert option.help
        assert missing(f"docs/formats/{name}.md", spec.encode_options) == []
    assert missing("docs/encoding.md", ENCODING_OPTIONS) == []


def test_how_to_write_messages_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = (s for s in snippets("docs/encoding.md") if s.runs)
    exec(compile(snippet.code, snippet.id, "exec"), {})
    assert '"commitTs":470604868574773248' in capsys.readouterr().out


@pytest.mark.parametrize("path", DOCS, ids=relative)
def test_every_write_names_its_mode(path: Path) -> None:
    """Spark refuses its own default."""
    for snippet in snippets(relative(path)):
        for mode, how in ((".mode(", ".write"), (".outputMode(", ".writeStream")):
            writes = len(re.findall(rf"{re.escape(how)}\s*\.format\(\"cdc\"\)", snippet.code))
            assert snippet.code.count(mode) >= writes, snippet.id


def test_every_example_of_writing_runs() -> None:
    for snippet in snippets("docs/writing.md"):
        # Those with a broker run in test_kafka_writing.py, all others in test_writing_docs.py.
        assert snippet.runs or "kafka.bootstrap.servers" in snippet.code, snippet.id


@pytest.mark.parametrize("plugin", PLUGINS, ids=relative)
def test_every_plugin_is_complete(plugin: Path) -> None:
    project = toml(plugin / "pyproject.toml")["project"]
    assert (plugin / "README.md").is_file()
    assert (plugin / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    (name,) = project["entry-points"]["cdcfmt"]
    assert (plugin.name, project["name"]) == (name, f"cdcfmt-{name}")
    page = f"docs/{name}.md" if plugin in TRANSPORTS else f"docs/formats/{name}.md"
    assert (ROOT / page).is_file()
    assert f"]({page})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert project["name"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("plugin", FORMATS, ids=relative)
def test_every_format_passes_the_kit_and_is_listed(plugin: Path) -> None:
    name = plugin.name
    conformance = (plugin / "tests/test_conformance.py").read_text(encoding="utf-8")
    assert f'codec = "{name}"' in conformance
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| [{name}](docs/formats/{name}.md) |" in readme


@pytest.mark.parametrize("plugin", TRANSPORTS, ids=relative)
def test_every_transport_passes_the_kit(plugin: Path) -> None:
    conformance = (plugin / "tests/test_conformance.py").read_text(encoding="utf-8")
    assert f'transport = "{plugin.name}"' in conformance


@pytest.mark.parametrize("path", DOCS, ids=relative)
def test_docs_name_no_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not re.search(r"(?<![\w.])/(home|root|tmp|var|opt|mnt|usr|Users)/", text)


@pytest.mark.parametrize("path", DOCS, ids=relative)
def test_links_are_valid(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        other = (path.parent / file) if file else path
        assert other.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(_anchor, headings), target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_snippets_of_packages_run(capsys: pytest.CaptureFixture[str]) -> None:
    for package in (ROOT / "cdcfmt_core", *FORMATS):
        runnable = [s for s in snippets(relative(package / "README.md")) if s.runs and not s.needs]
        assert runnable
        for snippet in runnable:
            exec(compile(snippet.code, snippet.id, "exec"), {})
        assert capsys.readouterr().out
