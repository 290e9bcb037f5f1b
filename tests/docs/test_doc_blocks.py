"""Every code block of the docs runs, and the commands in them exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli_tools import run, write_messages
from support.doc_snippets import Snippet, snippets
from support.golden_data import native_messages
from support.workspace import ROOT, projects, settings

PAGES = sorted(
    file.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/formats/*.md",
        "plugins/*/*/*.md",
        "spark_bridge/*.md",
        "cdcfmt_core/*.md",
    )
    for file in ROOT.glob(pattern)
)
RUN_BY = {
    "docs/cli.md": "plugins/tools/cli/tests/test_cli_docs.py",
    "docs/conformance-kit.md": "tests/packages/test_new_plugin.py",
    "docs/deployment.md": "spark_bridge/tests/test_cluster.py",
    "docs/hooks.md": "tests/docs/test_hooks_doc.py",
    "docs/kafka.md": "tests/docs/test_kafka_docs.py",
    "docs/postgresql.md": "tests/docs/test_postgresql_docs.py",
    "docs/rabbitmq.md": "tests/docs/test_rabbitmq_docs.py",
    "docs/layouts.md": "tests/packages/test_new_plugin.py",
    "docs/pipelines.md": "spark_bridge/tests/test_auto_cdc.py",
    "docs/registries.md": "tests/brokers/test_registry_spark.py",
    "docs/rocketmq.md": "tests/docs/test_rocketmq_docs.py",
    "docs/security.md": "tests/docs/test_kafka_docs.py",
    "docs/types-in-other-messages.md": "tests/packages/test_new_plugin.py",
    "docs/write-a-format.md": "tests/packages/test_new_plugin.py",
    "docs/write-a-transport.md": "tests/packages/test_new_transport.py",
    "docs/sync.md": "tests/sync/test_sync.py",
    "docs/rewriting.md": "spark_bridge/tests/test_writing_docs.py",
    "docs/writing.md": "spark_bridge/tests/test_writing_docs.py",
}
"""Pages whose blocks are run, quoted or compared as a whole by a test of their own."""

HELD_BY = {
    ("docs/formats/ticdc-avro.md", "subscribePattern"): "test_format_pages.py",
    ("docs/formats/debezium.md", 'option("tableSchemas"'): "test_connector_without_schemas.py",
    ("docs/formats/debezium.md", "json_object_agg"): "test_connector_without_schemas.py",
    ("docs/quickstart.md", "SparkSession.builder"): "test_session_settings_equal_the_page",
    ("docs/merge-by-hand.md", "enableTypeWidening"): "test_merge_by_hand.py",
    ("README.md", 'option("subscribe", "orders")'): "test_kafka_docs.py",
    ("README.md", "pyspark_cdcfmt.sync"): "test_sync.py",
}
"""Single blocks: page, a part of their text, and the test that runs them."""

COMMANDS = {"", "sh"}


def blocks(*languages: str) -> list[Snippet]:
    return [
        snippet
        for page in PAGES
        if page not in RUN_BY
        for snippet in snippets(page)
        if snippet.language in languages
    ]


def test_tests_of_pages_name_them() -> None:
    for page, test in RUN_BY.items():
        assert page in (ROOT / test).read_text(encoding="utf-8"), test


@pytest.mark.parametrize("block", blocks("python", "sql", "console"), ids=lambda block: block.id)
def test_code_runs(block: Snippet) -> None:
    held = any(page == block.file and part in block.code for page, part in HELD_BY)
    assert block.runs or held, "mark it with <!-- run -->"


@pytest.mark.parametrize("block", blocks("json", "toml"), ids=lambda block: block.id)
def test_data_is_generated(block: Snippet) -> None:
    lines = (ROOT / block.file).read_text(encoding="utf-8").split("\n")
    assert lines[block.line - 4] == "<!-- message:begin -->", (
        "tests/support/doc_wires.py makes messages"
    )


def test_every_listed_block_exists() -> None:
    for page, part in HELD_BY:
        (_,) = [snippet for snippet in snippets(page) if part in snippet.code]


# --- Commands ----------------------------------------------------------------------------


def _commands() -> Iterator[tuple[str, list[str]]]:
    for block in blocks(*COMMANDS):
        for line in block.code.replace("\\\n", "").splitlines():
            if words := shlex.split(line, comments=True):
                yield block.id, words


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dump").mkdir()
    write_messages(tmp_path / "dump/canal.jsonl", native_messages("canal/canal_flat"))
    monkeypatch.chdir(tmp_path)
    run("sample", "samples/")


@pytest.mark.usefixtures("dump")
@pytest.mark.parametrize(("where", "words"), [*_commands()], ids=str)
def test_commands_exist(where: str, words: list[str]) -> None:
    match words:
        case ["make", target, *_]:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        case ["git", "clone", _] | ["cd", _] | [".", _] | ["python3", "-m", "venv", _]:
            pass
        case ["pip", "install", *given]:
            wanted = given[3:] if given[:3] == ["--no-index", "--find-links", "dist"] else given
            for requirement in wanted:
                assert _can_be_installed(requirement), requirement
        case ["cdcfmt", *arguments]:
            line = [word.replace("shop.orders", "shop.pair") for word in arguments]
            # Nothing answers at the registry of the docs; wrong options have another exit code.
            code = 3 if any("//registry:" in word for word in line) else 0
            assert run(*line).exit_code == code, where
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module)
        case _:
            raise AssertionError(f"what is {words}?")


def _can_be_installed(requirement: str) -> bool:
    """A project of this repository, by path or name, with the extras that are asked for."""
    name, _, extras = requirement.rstrip("]").partition("[")
    folders = [
        folder
        for folder in projects()
        if settings(folder)["project"]["name"] == name
        or (name.startswith(".") and folder.match((ROOT / name).as_posix()))
    ]
    return bool(folders) and all(
        extra in settings(folder)["project"]["optional-dependencies"]
        for folder in folders
        for extra in filter(None, extras.split(","))
    )
