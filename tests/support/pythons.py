"""Run tests on the other Pythons of this machine.

- ``oldest``, ``newest``: the quick tests, which need neither Spark nor Kafka, each with the first
  of its parameters, but for some over all golden data, on the oldest patch of this minor version.
  What a version between them lacks or has, one of these lacks or has, too.  That of development
  runs them anyway.
- ``every``: all quick tests, with all parameters, on the oldest patch of each supported minor
  version.
- ``lowest``: the same as ``oldest``, with the oldest versions of dependencies that the packages
  accept.
- ``smoke``: the Spark smoke tests, on the newest Python with the newest Spark, and on the oldest
  Python with the oldest Spark.
- ``before``: all tests that need Spark, with the kernel, on the oldest Python with the oldest
  Spark.

Each has an environment of its own under ``.venv-pythons``.  Interpreters are found on PATH,
in the system's folders and in those of pyenv, uv and ``/opt/python``.  Versions without an
interpreter here are named, not tested.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from pyspark_cdcfmt.versions import MATRIX
from support.workspace import ROOT, projects, settings

SUPPORTED = tuple((3, minor) for minor in MATRIX[0].pythons)

Version = tuple[int, int, int]

_SHOW = "import sys; print(*sys.version_info[:4], sys.implementation.name, sys.executable)"
_FOLDERS = ("/usr/bin", "/usr/local/bin")
_ROOTS = (".pyenv/versions", ".local/share/uv/python", "/opt/python")
# Property tests run with many examples on the Python of development.
_FEW = ("--hypothesis-profile", "few")
_TESTS = ("tests", "plugins", "spark_bridge")
_QUICK = (*_FEW, "-m", "quick", *_TESTS)
# Over all golden data, and the same on each.
_GOLDEN = (
    "plugins/tools/cli/tests/test_convert_engine",
    "plugins/tools/cli/tests/test_golden",
    "tests/sync/test_block_events",
    "spark_bridge/tests/test_changes_from_events",
)
# The kit runs for JSON and Avro.
_KITS = ("canal-json", "cloudcanal-json", "debezium", "dts-avro", "open-protocol")
_FIRST = (
    *(*_FEW, "-m", "quick and first", *_TESTS),
    *(f"--ignore={name}.py" for name in _GOLDEN),
    *(f"--ignore=plugins/formats/{name}/tests/test_conformance.py" for name in _KITS),
)
_NO_DELTA = "tests/traps/test_sync_without_delta.py"
# Rich lays out tables in another way.
_LOWEST = (*_FIRST, "--ignore=plugins/tools/cli/tests/test_cli_docs.py")
_FLOOR = re.compile(r"([\w-]+(?:\[[\w,-]+\])?)>=([\d.]+)")
_SMOKE = (
    *("-m", "smoke", "spark_bridge", "tests/brokers/test_kafka_stream.py", _NO_DELTA),
    "tests/sync/test_iceberg.py",
)
_SPARK = ("-m", "spark and not thorough", "--durations", "20", *_TESTS)


def main(what: str) -> None:
    """Run the tests of one of the names above; exit with 1 on failures."""
    found = interpreters()
    if not found:
        sys.exit(f"no supported Python here: {SUPPORTED}")
    oldest, newest = min(found), max(found)
    print("Python:", ", ".join(".".join(map(str, version)) for version in sorted(found)))
    if missing := [f"{a}.{b}" for a, b in SUPPORTED if not any(v[:2] == (a, b) for v in found)]:
        print("NOT TESTED, no interpreter of Python", ", ".join(missing))
    runs: list[tuple[Version, str, tuple[str, ...]]]
    if what == "smoke":
        runs = [(newest, "spark-next", _SMOKE), (oldest, "spark-before", _SMOKE)]
    elif what == "before":
        runs = [(oldest, "spark-before", _SPARK)]
    elif what == "lowest":
        runs = [(oldest, "lowest", _LOWEST)]
    else:
        patches = oldest_patches(found)
        others = {*patches} - {sys.version_info[:3]}
        if what != "every":
            others &= {patches[0 if what == "oldest" else -1]}
            others = {version for version in others if version[:2] != sys.version_info[:2]}
        tests = _QUICK if what == "every" else _FIRST
        runs = [(version, "spark", tests) for version in sorted(others)]
    failed = [
        f"{'.'.join(map(str, version))} with group {group}"
        for version, group, tests in runs
        if run(found[version], version, what, group, tests)
    ]
    if failed:
        sys.exit(f"failed on Python {', '.join(failed)}")


def interpreters() -> dict[Version, str]:
    """The supported CPythons of this machine: final releases, by version."""
    found: dict[Version, str] = {}
    if sys.version_info[:2] in SUPPORTED:
        found[sys.version_info[:3]] = sys.executable
    for program in sorted(set(_programs())):
        try:
            done = subprocess.run(
                [program, "-c", _SHOW], capture_output=True, text=True, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        major, minor, micro, level, name, executable = done.stdout.strip().split(maxsplit=5)
        version = (int(major), int(minor), int(micro))
        if version[:2] in SUPPORTED and level == "final" and name == "cpython":
            found.setdefault(version, executable)
    return found


def _programs() -> Iterator[str]:
    folders = [Path(folder) for folder in (*os.environ["PATH"].split(os.pathsep), *_FOLDERS)]
    for root in _ROOTS:
        folders += Path.home().joinpath(root).glob("*/bin")
    own = Path(sys.prefix, "bin")
    for folder in folders:
        if folder != own:
            for major, minor in SUPPORTED:
                program = folder / f"python{major}.{minor}"
                if program.exists():
                    yield str(program)


def oldest_patches(versions: dict[Version, str]) -> list[Version]:
    """The lowest version of each minor one: what an old distribution has."""
    return [
        min(version for version in versions if version[:2] == minor)
        for minor in SUPPORTED
        if any(version[:2] == minor for version in versions)
    ]


def floors() -> list[str]:
    """The oldest accepted version of each dependency and extra of the packages."""
    lists: list[Sequence[str]] = []
    for package in projects():
        project = settings(package)["project"]
        lists += [
            project.get("dependencies", ()),
            *project.get("optional-dependencies", {}).values(),
        ]
    found = filter(None, (_FLOOR.match(text) for each in lists for text in each))
    return sorted({f"{match[1]}=={match[2]}" for match in found if "cdcfmt" not in match[1]})


def run(program: str, version: Version, what: str, group: str, tests: tuple[str, ...]) -> int:
    """Make an environment and run pytest there; its exit code."""
    # Smoke tests run at the same time, on the same versions, without the kernel.
    label = what if what == "before" else group
    name = ".".join(map(str, version)) + ("" if label == "spark" else f"-{label}")
    folder = ROOT / ".venv-pythons" / name
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)}
    environment.pop("VIRTUAL_ENV", None)
    groups = ["--all-packages", "--no-group", "docs"]
    if group in ("spark-before", "spark-next"):
        groups += ["--no-group", "spark", "--group", group]
    if what not in ("lowest", "before") or not find_spec("cdcfmt_kernel"):
        groups += ["--no-install-package", "cdcfmt-kernel"]
    subprocess.run(
        [os.environ["UV"], "sync", "--quiet", "--python", program, *groups],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    python = str(folder / "bin" / "python")
    if group == "lowest":
        install = [os.environ["UV"], "pip", "install", "--quiet", "--no-config"]
        subprocess.run([*install, "--python", python, *floors()], env=environment, check=True)
    print(f"\n== Python {name} ==", flush=True)
    command = [python, "tests/support/java.py", "--", python, "-m"]
    if what == "before":
        subprocess.run([*command, "support.spark_archive"], cwd=ROOT, env=environment, check=True)
    done = subprocess.run(
        [*command, "pytest", "-q", *tests], cwd=ROOT, env=environment, check=False
    )
    return done.returncode


if __name__ == "__main__":
    main(sys.argv[1])
