"""Broken plugins beside the good ones: all formats are read by ``auto`` as without them."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from cloudcanal_messages import DML
from support.golden_data import CODECS, load_variant, native_messages
from support.installed_plugins import Site, codec_module, transport_module, type_map_module
from support.spark_settings import SESSION

from cdcfmt_cli.settings import SECTIONS
from cdcfmt_core import Option, default_registry
from cdcfmt_core.events import Message
from cdcfmt_core.options import READING, WRITING
from pyspark_cdcfmt.local import environment as of_spark
from pyspark_cdcfmt.options import bridge_options
from pyspark_cdcfmt.write_options import output_options

pytestmark = pytest.mark.one_python

NATIVE = {"canal": "canal/canal_flat", "dts": "dts/dts", "connector": "debezium/schema_default"}
FORMATS = {*CODECS.values(), "cloudcanal-json", "dts-avro"}

CDCFMT = (sys.executable, "-c", "from cdcfmt_cli import main; main()")

BOOM = "def boom(*given):\n    raise RuntimeError('boom')\n"


def greedy(name: str, more: str = "") -> str:
    """A format that claims every message, and is tried first."""
    source = codec_module(name, more=more).replace("lambda message: 0.0", "lambda message: 1.0")
    return source.replace("calls = 0", "calls = 0\n" + BOOM)


def raising(name: str, function: str, replaced: str) -> str:
    return greedy(name).replace(replaced, function)


_OPEN = "lambda options, context: lambda message: [Heartbeat()]"
_SNIFF = "sniff=lambda message: 1.0"

BROKEN: dict[str, tuple[str, str]] = {
    "a-import": ("import no_such_import", "No module named 'no_such_import'"),
    "a-stop": (
        "class Stop(BaseException): pass\nraise Stop('at import')",
        "could not be loaded: Stop: at import",
    ),
    "a-no-hook": (
        greedy("a-no-hook").replace("@hookimpl\n", ""),
        "'a-no-hook' of broken-a-no-hook 1.0 could not be loaded: TypeError: it has no hook: mark",
    ),
    "a-typo": (
        greedy("a-typo").replace("def cdcfmt_register_codecs", "def cdcfmt_register_codec"),
        "unknown hook 'cdcfmt_register_codec'; did you mean cdcfmt_register_codecs?",
    ),
    "a-unmarked-typo": (
        greedy("a-unmarked-typo")
        .replace("@hookimpl\n", "")
        .replace("def cdcfmt_register_codecs", "def cdcfmt_registers_codecs"),
        "cdcfmt_registers_codecs; did you mean cdcfmt_register_codecs?",
    ),
    "a-misnamed": (greedy("a-other"), "it registers 'a-other', but has no entry point"),
    "a-twice": (greedy("a-twice"), "'a-twice' is registered by broken-a-twice 1.0 and second"),
    "a-newer": (
        greedy("a-newer").replace("api_version=1", "api_version=99"),
        "written for plugin API 99",
    ),
    "a-no-module": (
        raising("a-no-module", "'no_such_module.decode:open_decoder'", _OPEN),
        "open_decoder of format 'a-no-module' (broken-a-no-module 1.0) failed: ",
    ),
    "a-open": (
        raising("a-open", "boom", _OPEN),
        "open_decoder of format 'a-open' (broken-a-open 1.0) failed: RuntimeError: boom",
    ),
    "a-open-none": (
        raising("a-open-none", "lambda options, context: None", _OPEN),
        "open_decoder of format 'a-open-none' (broken-a-open-none 1.0) returned None: return the",
    ),
    "a-scan": (
        greedy("a-scan", "scan_schemas=boom"),
        "scan_schemas of format 'a-scan' (broken-a-scan 1.0) failed: RuntimeError: boom",
    ),
    "a-statements": (
        greedy("a-statements", "scan_statements=lambda options, context: 5"),
        "scan_statements of format 'a-statements' (broken-a-statements 1.0) returned 5",
    ),
    "a-sniff": (
        raising("a-sniff", "sniff=boom", _SNIFF),
        "sniff of format 'a-sniff' (broken-a-sniff 1.0) failed: RuntimeError: boom",
    ),
    "a-sniff-exits": (
        raising("a-sniff-exits", "sniff=lambda message: exit('sniffed')", _SNIFF),
        "sniff of format 'a-sniff-exits' (broken-a-sniff-exits 1.0) failed: SystemExit",
    ),
    **{
        f"a-sniff-{number}": (
            raising(f"a-sniff-{number}", f"sniff=lambda message: {value}", _SNIFF),
            f"sniff of format 'a-sniff-{number}' (broken-a-sniff-{number} 1.0) {reason}",
        )
        for number, (value, reason) in enumerate(
            [
                ("2.0", "returned 2.0: return a number from 0.0 to 1.0"),
                ("None", "returned None: return a number"),
                ("'yes'", "returned 'yes': return a number"),
                ("float('nan')", "returned nan: return a number"),
                ("-1", "returned -1: return a number"),
            ]
        )
    },
    "a-reserved": (
        greedy("a-reserved", "options=(Option('sourceTimeZone', ''),)"),
        "format a-reserved: options with names that every format has: 'sourceTimeZone'",
    ),
    "a-type-map": (
        greedy("a-type-map", "type_map='no-such-map'"),
        "format 'a-type-map' (broken-a-type-map 1.0): unknown type map 'no-such-map'",
    ),
    "a-auto": (greedy("auto"), "format 'auto': the name is taken"),
    "canal-json": (
        greedy("canal-json"),
        "format 'canal-json' is registered by broken-canal-json 1.0 and cdcfmt-canal-json ",
    ),
    "a-transport": (
        transport_module("a-transport", more="open_source='no_such:source', prefix='kafka.'"),
        "prefix of options 'kafka.' is registered by broken-a-transport 1.0 and cdcfmt-kafka ",
    ),
    "debezium": (
        type_map_module("debezium", None, "{}"),
        "type map 'debezium' is registered by broken-debezium 1.0 and cdcfmt-debezium ",
    ),
    "mysql": (
        type_map_module("a-types", "mysql", "type('Map', (), {'get': lambda text: 1 // 0})"),
        "type map 'a-types' of broken-mysql 1.0 failed for 'int",
    ),
}
"""Entry point → the plugin's module, and the reason in listings."""

NOT_READ = {
    *("a-no-module", "a-open", "a-open-none", "a-scan", "a-statements", "a-type-map", "mysql"),
    *(name for name in BROKEN if name.startswith("a-sniff")),
}
"""Those whose failure shows when messages are read; the others fail to load."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of processes in which the broken plugins are installed."""
    folder = tmp_path_factory.mktemp("broken plugins")
    site = Site(folder)
    for name, (source, _) in BROKEN.items():
        module = f"broken_{name.replace('-', '_')}"
        entry_point = "a-auto" if name == "a-auto" else name
        site.install(f"broken-{name}", {entry_point: module}, **{module: source})
    site.install("second", {"a-twice": "second"}, second=greedy("a-twice"))
    unreadable = folder / "unreadable-1.0.dist-info"
    unreadable.mkdir()
    (unreadable / "entry_points.txt").write_text("[cdcfmt]\nno equals sign\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CDCFMT_")}
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Messages of every format."""
    folder = tmp_path_factory.mktemp("messages")
    inputs: dict[str, Iterable[Message]] = {
        protocol: (golden.message for golden in load_variant(protocol, "default").messages)
        for protocol in CODECS
    }
    inputs["cloudcanal"] = [Message(None, json.dumps(DML | {"action": "INSERT"}).encode())] * 3
    inputs |= {name: native_messages(path) for name, path in NATIVE.items()}
    for name, messages in inputs.items():
        with (folder / f"{name}.jsonl").open("w") as file:
            for offset, message in enumerate(islice(messages, 40)):
                parts = {"key": message.key, "value": message.value}
                texts = {n: p and base64.b64encode(p).decode() for n, p in parts.items()}
                print(json.dumps({**texts, "offset": offset}), file=file)
    return folder


def cdcfmt(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CDCFMT, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def warnings_of(text: str) -> Counter[str]:
    """How often each broken plugin is named in warnings."""
    return Counter(
        name
        for line in text.splitlines()
        if "note: " in line or "Warning: " in line
        for name, (_, reason) in BROKEN.items()
        if reason in line
    )


def test_the_command_line_reads_every_format(folder: Path, environment: dict[str, str]) -> None:
    disabled = ",".join([*(f"broken-{name}" for name in BROKEN), "second"])
    for command in (["cat", "--format", "json"], ["stats", "--json"], ["validate"]):
        without = cdcfmt(*command, folder, **environment, CDCFMT_DISABLED_PLUGINS=disabled)
        with_them = cdcfmt(*command, folder, **environment)
        assert (without.returncode, with_them.returncode) == (0, 0), without.stdout
        lag = r'"lag_ms":\d+'  # until now
        assert re.sub(lag, "", with_them.stdout) == re.sub(lag, "", without.stdout)
        warned = warnings_of(with_them.stderr)
        assert warned == dict.fromkeys(BROKEN, 1), with_them.stderr
    found = json.loads(cdcfmt("sniff", "--json", folder, **environment).stdout)
    assert found.keys() - {"no value (tombstone)"} == FORMATS
    inspected = cdcfmt("inspect", folder / "canal-json.jsonl", **environment)
    assert inspected.returncode == 0, inspected.stderr


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "cdcfmt_core"], [*CDCFMT, "formats"]], ids=["core", "cli"]
)
def test_listings_open_every_factory(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("broken: ")]
    for name, (_, reason) in BROKEN.items():
        assert sum(reason in line for line in lines) == 1, (name, done.stdout)
    # Each has a remedy.
    remedies = ("DISABLED_PLUGINS", "install", "to read it", "upgrade cdcfmt-core")
    assert all(any(remedy in line for remedy in remedies) for line in lines)
    for codec in FORMATS:
        assert any(line.lstrip().startswith(codec) for line in done.stdout.splitlines())


def test_doctor_lists_remedies(environment: dict[str, str]) -> None:
    done = cdcfmt("doctor", "--json", **environment)
    checks = [item for item in json.loads(done.stdout) if item["subject"] == "Formats"]
    bad = [item for item in checks if item["state"] == "bad"]
    for _, reason in BROKEN.values():
        assert sum(reason in item["text"] for item in bad) == 1, reason
    assert all(item["remedy"] for item in bad)
    assert any("update or uninstall broken-a-open" in item["remedy"] for item in bad)


def test_broken_format_is_an_error_if_named(folder: Path, environment: dict[str, str]) -> None:
    path = folder / "canal-json.jsonl"
    for name in ("a-import", "a-open", "a-scan", "a-type-map"):
        done = cdcfmt("cat", "--protocol", name, path, **environment)
        assert done.returncode in (2, 3), done.stderr
        assert BROKEN[name][1] in done.stderr
        assert "Traceback" not in done.stderr


SPARK = (
    SESSION
    + """
import json, sys
events = spark.read.format("cdc").load(sys.argv[1])
rows = events.selectExpr("to_json(struct(* except (_source)))", "_source.path").collect()
print("RESULT" + json.dumps(sorted([path, text] for text, path in rows)))
print("CORRUPT" + str(sum("corrupt" in text[:40] for text, _ in rows)))
"""
)


def test_spark_reads_every_format(folder: Path, environment: dict[str, str]) -> None:
    disabled = ",".join([*(f"broken-{name}" for name in BROKEN), "second"])
    results = {}
    for more in ({"CDCFMT_DISABLED_PLUGINS": disabled}, {}):
        done = subprocess.run(
            [sys.executable, "-c", SPARK, str(folder)],
            env={**environment, **of_spark(), **more},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert "RESULT" in done.stdout, done.stdout + done.stderr
        results[bool(more)] = done.stdout.partition("RESULT")[2], done.stderr
    (with_them, warned), (without, _) = results[False], results[True]
    assert with_them == without
    assert with_them.count(".jsonl") > 200
    assert "CORRUPT0" in with_them
    # Once on the driver; a failure that only reading finds is also logged by each worker.
    found = warnings_of(warned)
    assert {name for name in BROKEN.keys() - NOT_READ if found[name] != 1} == set(), warned


def test_reserved_names_equal_the_option_tables() -> None:
    transports = default_registry().transports().values()
    reading = [*bridge_options(), *(option for table in SECTIONS.values() for option in table)]
    reading += [option for transport in transports for option in transport.options]
    writing = [*output_options(), *(o for each in transports for o in each.sink_options)]
    # The bridge passes onMissingSchema on to a format that declares it.
    assert _names(reading) - {"onmissingschema"} == READING
    assert _names(writing) == WRITING


def _names(options: Iterable[Option]) -> set[str]:
    return {option.name.lower() for option in options if "." not in option.name}
