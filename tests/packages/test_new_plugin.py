"""New plugins of third parties: wheels in an environment of their own.

Three are the examples of the docs, one is fresh from the template, and some are bad.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.doc_snippets import files_in_snippets, snippets
from support.fresh_venv import SHARED, Venv, build_wheels, make_venv
from support.spark_settings import SESSION
from support.workspace import ROOT

from cdcfmt_cli.template import create_plugin
from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Column, Heartbeat
from cdcfmt_core.types import Unknown
from cdcfmt_testing import RoundTrip
from cdcfmt_testing.cases import read_messages

pytestmark = pytest.mark.one_python

MAXWELL = ROOT / "docs/example/cdcfmt-maxwell"
DMS = ROOT / "docs/example/cdcfmt-dms"
GOLDENGATE = ROOT / "docs/example/cdcfmt-goldengate"
DOC = "docs/write-a-format.md"
DMS_DOC = "docs/types-in-other-messages.md"
SNIPPETS = snippets(DOC)
RUNNABLE = [snippet for snippet in SNIPPETS if snippet.runs]
(DMS_RUNNABLE,) = [snippet for snippet in snippets(DMS_DOC) if snippet.runs]

GOOD = """
from cdcfmt_core import CodecSpec, hookimpl

@hookimpl
def cdcfmt_register_codecs():
    return [
        CodecSpec(
            name=NAME, summary="of " + __name__, spec_url="https://example.com",
            open_decoder=lambda options, context: lambda message: [],
            sniff=lambda message: 0.0, emits=frozenset({"row"}), type_map="mysql",
            api_version=VERSION,
        )
    ]
"""

BAD_PLUGINS = {
    "cdcfmt-broken": ("broken", "import no_such_module_at_all"),
    "cdcfmt-future": ("future", 'NAME, VERSION = "future", 99' + GOOD),
    "cdcfmt-one": ("twice", 'NAME, VERSION = "twice", 1' + GOOD),
    "cdcfmt-two": ("twice", 'NAME, VERSION = "twice", 1' + GOOD),
    "cdcfmt-slow": (
        "slow",
        "import pathlib\n"
        "pathlib.Path(__file__).with_suffix('.imported').touch()\n"
        'NAME, VERSION = "slow", 1' + GOOD,
    ),
}
"""Distribution → its entry point, and the module behind it."""

REASONS = {
    "broken": "plugin 'broken' of cdcfmt-broken 1.0 could not be loaded: ModuleNotFoundError: "
    "No module named 'no_such_module_at_all'",
    "future": "cdcfmt-future 1.0 was written for plugin API 99, this cdcfmt-core supports 1: "
    "upgrade cdcfmt-core",
    "twice": "format 'twice' is registered by cdcfmt-one 1.0 and cdcfmt-two 1.0: uninstall one, "
    "or disable one with CDCFMT_DISABLED_PLUGINS",
    "debezium": "unknown format 'debezium'; installed: acme-json, dms, goldengate, maxwell, slow. "
    "Install it: pip install cdcfmt-debezium",
}
"""Requested format → the error, without Spark and with it."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin that the first code block of the docs writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("template"))
        names: dict[str, Any] = {}
        exec(compile(RUNNABLE[0].code, RUNNABLE[0].id, "exec"), names)
        folder: Path = names["folder"].resolve()
    assert folder.name == "cdcfmt-acme-json"
    return folder


@pytest.fixture(scope="module")
def venv(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    projects = [ROOT, *SHARED, ROOT / "spark_bridge", MAXWELL, DMS, GOLDENGATE, template]
    wheels = build_wheels(projects, tmp_path_factory.mktemp("wheels"))
    assert len(wheels) == len(projects)
    return make_venv(tmp_path_factory.mktemp("fresh") / "venv", wheels)


@pytest.fixture
def bad_plugins(tmp_path: Path) -> Path:
    """A folder of installed packages, as pip leaves them, for PYTHONPATH."""
    for dist, (entry_point, source) in BAD_PLUGINS.items():
        module = dist.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[cdcfmt]\n{entry_point} = {module}\n")
    return tmp_path


def test_kit_and_template_are_in_their_wheels(venv: Venv, tmp_path: Path) -> None:
    """With samples and files; and the command line does not import the kit."""
    for package, inside in (("cdcfmt_testing", ""), ("cdcfmt_cli", "template")):
        (wheel,) = (path for path in venv.wheels if path.name.startswith(f"{package}-"))
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            text = archive.read(metadata).decode()
        (source,) = ROOT.glob(f"plugins/tools/*/src/{package}")
        found = (path for path in (source / inside).rglob("*") if path.is_file())
        wanted = {p.relative_to(source.parent).as_posix() for p in found if p.suffix != ".pyc"}
        assert wanted <= names
        if package == "cdcfmt_testing":
            for name in ("hypothesis", "pytest"):
                assert re.search(rf"Requires-Dist: {name}>=[0-9.]+", text)
    modules = "import sys, cdcfmt_cli; print({'pytest', 'hypothesis'} & {*sys.modules})"
    assert venv.run("-c", modules).stdout == "set()\n"


def test_all_plugins_are_listed(venv: Venv) -> None:
    listing = venv.run("-m", "cdcfmt_core")
    assert listing.returncode == 0, listing.stderr
    for name in ("acme-json", "dms", "goldengate", "maxwell"):
        assert f"cdcfmt-{name} 0.1.0" in listing.stdout
    assert "canal-json" not in listing.stdout


def test_the_commands_of_the_docs(venv: Venv, template: Path, tmp_path: Path) -> None:
    """Both plugins pass the kit, and the example's events equal its files."""
    example = tmp_path / "cdcfmt-maxwell"
    shutil.copytree(MAXWELL, example)
    for path in example.glob("cases/*/events.json"):
        path.unlink()
    commands = [line for s in SNIPPETS if s.language == "sh" for line in s.code.splitlines()]
    assert len(commands) == 6
    for command in commands:
        program, *arguments = shlex.split(command)
        if program == "pip":
            # The wheels are installed already.
            continue
        if program == "pytest":
            arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        else:
            assert program == "python"
        of_template = "acme" in command or command == "python -m cdcfmt_core"
        done = venv.run(*arguments, cwd=template.parent if of_template else example)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert " failed" not in done.stdout
        assert " xfailed" not in done.stdout
    for path in example.glob("cases/*/events.json"):
        assert path.read_bytes() == (MAXWELL / path.relative_to(example)).read_bytes()
    assert len(list(example.glob("cases/*/events.json"))) == 2


@pytest.mark.parametrize("source", [DMS, GOLDENGATE], ids=lambda source: source.name)
def test_the_other_examples_pass_the_kit(venv: Venv, tmp_path: Path, source: Path) -> None:
    """Without the kernel, which is not installed there; kernel/test_kit.py has it."""
    example = tmp_path / source.name
    shutil.copytree(source, example)
    done = venv.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=example)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_is_short() -> None:
    code = (MAXWELL / "src/cdcfmt_maxwell/decode.py").read_text(encoding="utf-8")
    assert len([line for line in code.splitlines() if line.strip()]) <= 60


def test_errors_of_bad_plugins(venv: Venv, bad_plugins: Path) -> None:
    listing = venv.run("-m", "cdcfmt_core", PYTHONPATH=str(bad_plugins))
    assert listing.returncode == 1
    for name, reason in REASONS.items():
        assert (reason in listing.stdout) == (name != "debezium"), listing.stdout
    assert "acme-json" in listing.stdout
    without = venv.run(
        "-m",
        "cdcfmt_core",
        PYTHONPATH=str(bad_plugins),
        CDCFMT_DISABLED_PLUGINS="broken,cdcfmt-future,cdcfmt-two",
    )
    assert without.returncode == 0, without.stdout
    assert "disabled: twice of cdcfmt-two" in without.stdout
    assert "of cdcfmt_one" in without.stdout


SPARK = (
    SESSION
    + """
import json, sys
folder, names = sys.argv[1], sys.argv[2].split(",")
cdc = lambda name: spark.read.format("cdc").option("protocol", name)
# How users ask for it, and nothing else before it: no other plugin is looked at.
events = spark.read.format("cdc").option("protocol", "maxwell").load(folder)
scope = {"spark": spark}
exec(sys.argv[4], scope)
exec(sys.argv[5], scope)
result = {
    "pair": [list(row) for row in scope["pair"].collect()],
    "kinds": [row.kind for row in events.select("kind").collect()],
    "after": [row[0] for row in events.where("table = 'pair' and op = 'read'")
              .selectExpr("to_json(after)").collect()],
    "films": [scope["films"].dtypes[:6], *map(str, scope["films"].collect())],
    "slow": __import__("pathlib").Path(sys.argv[3]).exists(),
    "errors": {},
}
for name in names:
    try:
        cdc(name).load(folder).collect()
    except Exception as error:
        result["errors"][name] = str(error)
print("RESULT" + json.dumps(result))
spark.stop()
"""
)


def test_spark_reads_the_example_and_reports_errors(
    venv: Venv, bad_plugins: Path, tmp_path: Path
) -> None:
    slow = bad_plugins / "cdcfmt_slow.imported"
    (tmp_path / "dump").mkdir()
    shutil.copy(MAXWELL / "cases/rows/messages.jsonl", tmp_path / "dump")
    (tmp_path / "dms").mkdir()
    shutil.copy(DMS / "cases/postgresql/messages.jsonl", tmp_path / "dms")
    arguments = ("dump", ",".join(REASONS), str(slow), RUNNABLE[1].code, DMS_RUNNABLE.code)
    environment = venv.spark_environment() | {"PYTHONPATH": str(bad_plugins)}
    done = venv.run("-c", SPARK, *arguments, cwd=tmp_path, **environment)
    assert "RESULT" in done.stdout, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout.partition("RESULT")[2])
    assert {kind: result["kinds"].count(kind) for kind in ("row", "heartbeat", "corrupt")} == {
        "row": 31,
        "heartbeat": 4,
        "corrupt": 0,
    }
    assert [json.loads(text) for text in result["after"]] == [
        {"a": 1, "b": "x", "n": 1, "v": "v1"},
        {"a": 1, "b": "y", "n": 2, "v": "v2"},
    ]
    assert result["pair"][:2] == [[1, "x", "v1", 1, "insert"], [1, "y", "v2", 2, "insert"]]
    assert [1, "x", "v1", 2, "update_postimage"] in result["pair"]
    types, *films = result["films"]
    strings = ("title", "kind", "len")
    assert dict(types) == dict.fromkeys(strings, "string") | {
        "code": "string",
        "did": "int",
        "date_prod": "date",
    }
    assert len(films) == 2
    # The docs show these events, too.
    assert "|heartbeat|" in done.stdout
    assert not result["slow"]
    for name, reason in REASONS.items():
        assert reason in result["errors"][name], result["errors"][name]


# What the docs show


def test_quoted_code_equals_the_example() -> None:
    quoted = 0
    pages = (DOC, DMS_DOC, "docs/conformance-kit.md", "docs/layouts.md")
    for snippet in (snippet for page in pages for snippet in snippets(page)):
        first, _, code = snippet.code.partition("\n")
        match = re.fullmatch(r"# ([\w./-]+\.(?:py|toml))", first)
        if match is None or match[1] == "cdcfmt_tinyint1.py":
            continue
        example = DMS if snippet.file == DMS_DOC else MAXWELL
        folder = ROOT if match[1].startswith("docs/") else example
        assert code in (folder / match[1]).read_text(encoding="utf-8"), snippet.id
        quoted += 1
    assert quoted == 21


def test_lists_in_the_kits_docs_run() -> None:
    scope: dict[str, Any] = {}
    for snippet in snippets("docs/conformance-kit.md"):
        if snippet.runs:
            exec(compile(snippet.code, snippet.id, "exec"), scope)
    assert scope["UNTYPED"].column("a", Unknown(), True) == Column("a", "", Unknown(), key=True)
    (trip,) = scope["ROUND_TRIPS"]
    assert isinstance(trip, RoundTrip)
    written = Heartbeat(source_time=1_999_999)
    read = Heartbeat(source_time=1_000_000, extra={"number": 7})
    assert trip.normalise(written, read) == read
    assert all(": " in place and reason for place, reason in scope["DIFFERENCES"].items())


def test_round_trip_in_the_docs_equals_the_template(template: Path) -> None:
    (quoted,) = (s.code for s in SNIPPETS if s.code.startswith("# the template's "))
    first, _, code = quoted.partition("\n")
    file = template / first.removeprefix("# the template's ")
    assert code.strip() in file.read_text(encoding="utf-8")


def test_quoted_messages_and_events_equal_the_example() -> None:
    messages = read_messages(MAXWELL / "cases/rows/messages.jsonl")
    known = {message.key for message in messages} | {message.value for message in messages}
    message, key, event = (s.code.strip() for s in SNIPPETS if s.language == "json")
    assert {message.encode(), key.encode()} <= known
    assert event in (MAXWELL / "cases/rows/events.json").read_text(encoding="utf-8")
    (control,) = (s.code.strip() for s in snippets(DMS_DOC) if s.language == "json")
    known_to_dms = read_messages(DMS / "cases/postgresql/messages.jsonl")
    assert control.encode() in {message.value for message in known_to_dms}


def test_type_map_equals_the_reference() -> None:
    name = "cdcfmt_tinyint1.py"
    assert files_in_snippets(DOC)[name] == files_in_snippets("docs/hooks.md")[name]


def test_docs_show_the_errors_of_bad_plugins() -> None:
    text = (ROOT / DOC).read_text(encoding="utf-8")
    for reason in REASONS.values():
        assert f"| `{reason}` |" in text


# The template


def test_template_is_complete(template: Path) -> None:
    # Its tests have run: Python keeps bytecode there.
    found = (p for p in template.rglob("*") if p.is_file() and p.suffix != ".pyc")
    files = {path.relative_to(template).as_posix() for path in found}
    assert files == {
        "README.md",
        "pyproject.toml",
        *(
            f"src/cdcfmt_acme_json/{name}.py"
            for name in ("__init__", "message", "types", "options", "sniff", "decode", "encode")
        ),
        "src/cdcfmt_acme_json/layouts.py",
        "src/cdcfmt_acme_json/py.typed",
        "tests/test_conformance.py",
        *(
            f"cases/{case}/{file}"
            for case in ("rows", "ddl")
            for file in ("messages.jsonl", "events.json", "origin.txt")
        ),
    }
    for file in files:
        text = (template / file).read_text(encoding="utf-8")
        assert "@name@" not in text
        assert "@package@" not in text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Acme", "'Acme' is not a valid name of a format"),
        ("acme_json", "not a valid name of a format: lower-case letters and digits"),
        ("-a", "not a valid name of a format"),
        ("../a", "not a valid name of a format"),
        ("", "not a valid name of a format"),
        ("canal-json", "there is already a format 'canal-json'"),
        ("canal", "there is already a format 'canal'"),
        ("simple", "there is already a format 'simple'"),
    ],
)
def test_invalid_plugin_names(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=reason):
        create_plugin(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    folder = create_plugin("mine", tmp_path)
    mine = folder / "README.md"
    mine.write_text("my words")
    with pytest.raises(OptionError, match="already exists: remove it"):
        create_plugin("mine", tmp_path)
    assert mine.read_text() == "my words"
