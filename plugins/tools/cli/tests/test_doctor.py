"""``cdcfmt doctor`` on broken and complete installations."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cli_tools import run

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)


def findings(*arguments: object) -> list[dict[str, Any]]:
    result = run("doctor", "--json", *arguments)
    found: list[dict[str, Any]] = json.loads(result.stdout)
    assert result.exit_code == (1 if any(item["state"] == "bad" for item in found) else 0)
    return found


def problems(*arguments: object) -> list[tuple[str, str, str]]:
    return [
        (item["state"], item["text"], item["remedy"])
        for item in findings(*arguments)
        if item["state"] != "ok"
    ]


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def java_home(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    script(folder / "bin" / "java", f"echo 'openjdk version \"{version}\"' >&2")
    return folder


def test_all_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, "17.0.15")))
    found = findings()
    assert [item["text"] for item in found if item["state"] == "bad"] == []
    texts = "\n".join(item["text"] for item in found)
    for word in ("Python 3.", "canal-json (cdcfmt-canal-json", "Java 17", "pyspark 4.", "fsspec"):
        assert word in texts
    assert "0 bad" in run("doctor").stdout


@pytest.mark.parametrize(
    ("version", "state"), [("1.8.0_292", "bad"), ("11.0.2", "bad"), ("21", "ok")]
)
def test_java(version: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, version)))
    (of_java,) = (item for item in findings() if item["text"].startswith("Java "))
    assert of_java["state"] == state
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    assert any("install Java 17" in remedy for _, _, remedy in problems())


def test_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A Python without cdcfmt: the same interpreter without its packages.
    other = script(tmp_path / "python", f'exec "{sys.executable}" -S -I "$@"')
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", str(other))
    ((_, text, remedy),) = [p for p in problems() if "PYSPARK_DRIVER_PYTHON:" in p[1]]
    assert "has no pyspark-cdcfmt: DATA_SOURCE_NOT_FOUND" in text
    assert f"PYSPARK_DRIVER_PYTHON={sys.executable}" in remedy
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", str(tmp_path / "nothing"))
    assert any("does not run" in text for _, text, _ in problems())


def test_shadowing_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyspark_broken.py").write_text("import nothing_of_this_name")
    (tmp_path / "pyspark_quits.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path) + os.pathsep + os.environ.get("PYTHONPATH", ""))
    bad = [text for state, text, _ in problems() if state == "bad" and "hides every" in text]
    assert len(bad) == 2
    assert "pyspark_broken" in bad[0]
    assert "No module named 'nothing_of_this_name'" in bad[0]
    assert "pyspark_quits" in bad[1]


def test_unreachable_kafka() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = problems("--kafka", f"127.0.0.1:{port}")
    assert any("nothing answers" in text for _, text, _ in found)
    assert run("doctor", "--kafka", "localhost").exit_code == 2


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdcfmt_cli.commands.doctor.find_spec", lambda name: None)
    remedies = {remedy for _, _, remedy in problems()}
    assert {
        "pip install cdcfmt-files",
        "pip install 'cdcfmt-toolkit[compression]'",
    } <= remedies


def has_spark(version: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip leaves behind of another version."""
    (folder / f"pyspark-{version}.dist-info").mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: pyspark\nVersion: {version}\n"
    (folder / f"pyspark-{version}.dist-info" / "METADATA").write_text(text)
    monkeypatch.syspath_prepend(str(folder))


DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"


@pytest.mark.parametrize(
    ("version", "package", "state", "words"),
    [
        ("4.2.0", DELTA, "ok", "Delta 4.4.0 (--packages)"),
        ("4.1.4", DELTA.replace("_4.2_", "_4.1_"), "ok", "Delta 4.4.0 (--packages)"),
        ("4.1.4", DELTA, "bad", "is built for Spark 4.2, but pyspark is 4.1.4"),
        ("4.2.1", "io.delta:delta-spark_2.13:4.0.0", "bad", "is not built for Spark 4.2"),
        ("4.3.0", DELTA, "bad", "is built for Spark 4.2, but pyspark is 4.3.0"),
        ("4.3.0", None, "warn", "Delta has no build for Spark 4.3 yet"),
    ],
)
def test_delta(
    version: str,
    package: str | None,
    state: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_spark(version, tmp_path, monkeypatch)
    found = findings(*(["--packages", package] if package else []))
    (of_delta,) = (item for item in found if "Delta" in item["text"])
    assert of_delta["state"] == state
    assert words in of_delta["text"]
    if state == "ok":
        assert of_delta["remedy"] == ""
    elif version == "4.3.0":
        assert "pip install 'pyspark>=4.2,<4.3'" in of_delta["remedy"]
    else:
        assert DELTA.replace("_4.2_", f"_{version[:3]}_") in of_delta["remedy"]


def test_delta_in_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_spark("4.3.0", tmp_path / "site", monkeypatch)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--master local --packages a:b:1,{DELTA} shell")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(f"# a\nspark.jars.packages  {DELTA}\n")
    (tmp_path / "jars").mkdir()
    for jar in ("delta-spark_4.2_2.13-4.4.0.jar", "spark-core_2.13-4.2.0.jar"):
        (tmp_path / "jars" / jar).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    bad = "\n".join(text for state, text, _ in problems() if state == "bad")
    for where in ("PYSPARK_SUBMIT_ARGS", "spark-defaults.conf: spark.jars.packages", "jars"):
        assert re.search(rf"Delta 4.4.0 \([^)]*{where}\) is built for Spark 4.2", bad)
    assert f"SPARK_HOME={tmp_path} is Spark 4.2.0, but pyspark is 4.3.0" in bad


def test_unknown_spark_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_spark("4.0.4", tmp_path, monkeypatch)
    ((_, text, remedy),) = [found for found in problems() if "pyspark" in found[1]]
    assert text == "pyspark 4.0.4; pyspark-cdcfmt works with 4.1 to 4.3"
    assert remedy == "pip install 'pyspark>=4.2,<4.3'"
