"""A virtual environment with wheels of this repository in it, and nothing of its tree.

What comes from elsewhere (pyspark, pyarrow, pytest) is linked from the environment that
runs the tests: downloading it again would take minutes and prove nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import attrs
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pyspark_cdcfmt.local import environment
from support.maven import UnavailableError, cache_folder
from support.workspace import ROOT, settings

_SITE = Path(sysconfig.get_path("purelib"))
OWN = ("cdcfmt", "pyspark_cdcfmt", "_editable", "__editable")


def uv() -> str:
    """The uv that runs the tests."""
    found = os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".uv/bin/uv")
    assert Path(found).exists(), "uv is needed: make setup"
    return found


def cached_packages(name: str, packages: Iterable[str], *options: str) -> Path:
    """The folder ``name`` of the cache with packages, by uv, from the cache or their registry.

    :raises UnavailableError: where they cannot be fetched.
    """
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        into = Path(temporary, "packages")
        command = [uv(), "pip", "install", "--quiet", "--python", sys.executable, *options]
        done = subprocess.run(
            [*command, "--target", into, *packages],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1200,
            check=False,
        )
        if done.returncode:
            raise UnavailableError(done.stdout[-500:])
        # Another run may have been faster.
        if not folder.is_dir():
            into.rename(folder)
    return folder


SHARED = tuple(
    ROOT / "plugins" / folder
    for folder in (
        *("dialects/mysql", "common/toolkit", "transports/files"),
        *("tools/cli", "tools/testing"),
    )
)
"""Requirements of formats, transports, the bridge, the command line and the kit."""


def build_wheels(projects: Iterable[Path], folder: Path) -> list[Path]:
    """A wheel of each project; the build backend is the one that the workspace was built with."""
    for project in projects:
        _run(uv(), "build", "--quiet", "--offline", "--wheel", project, "--out-dir", folder)
    return sorted(folder.glob("*.whl"))


@attrs.frozen
class Venv:
    """An environment of its own."""

    folder: Path
    wheels: tuple[Path, ...] = ()

    @property
    def python(self) -> str:
        return str(self.folder / "bin/python")

    @property
    def site(self) -> Path:
        """Its site-packages."""
        (found,) = self.folder.glob("lib/python3*/site-packages")
        return found

    def install(self, wheels: Iterable[Path]) -> None:
        """Install wheels, and only them."""
        options = ("--quiet", "--offline", "--no-deps", "--python", self.python)
        _run(uv(), "pip", "install", *options, *wheels)

    def spark_environment(self) -> dict[str, str]:
        """Spark's environment variables: Java, and this Python for driver and workers."""
        return environment() | {
            "PYSPARK_PYTHON": self.python,
            "PYSPARK_DRIVER_PYTHON": self.python,
        }

    def run(
        self, *arguments: str, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python; nothing of the caller's environment leads back to this tree."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CDCFMT_", "PYTHON", "PYSPARK_", "PYTEST_", "VIRTUAL_ENV"))
        }
        path = os.pathsep.join([str(self.folder / "bin"), kept["PATH"]])
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd or self.folder,
            env={
                **kept,
                "PATH": path,
                "PYTHONIOENCODING": "utf-8",
                **environment,
            },
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=1200,
            check=False,
        )


def make_venv(folder: Path, wheels: Iterable[Path]) -> Venv:
    """A new environment with these wheels."""
    venv = _new_venv(folder, tuple(wheels))
    _link(
        venv,
        (
            entry
            for entry in _SITE.iterdir()
            if not entry.name.lower().startswith(OWN) and entry.suffix != ".pth"
        ),
    )
    return venv


def install_line(folder: Path, projects: Iterable[str], *, copied: bool = False) -> Venv:
    """The result of ``pip install`` of projects of this repository, such as ``./plugins/x[extra]``.

    Only what they require is linked or copied, with the extras that are named; a requirement
    that the version here does not meet is an error.
    """
    wanted = [re.fullmatch(r"(\.[\w./-]*)(?:\[([\w,-]+)\])?", project) for project in projects]
    paths = [ROOT / match[1] for match in wanted if match]
    assert len(paths) == len(wanted), projects
    venv = _new_venv(folder, tuple(build_wheels(paths, folder.with_name(f"{folder.name}-wheels"))))
    own = {_name(dist): dist for dist in metadata.distributions(path=[str(venv.site)])}
    waiting = [
        (_project_name(path), extra)
        for path, match in zip(paths, wanted, strict=True)
        for extra in ["", *((match and match[2]) or "").split(",")]
    ]
    seen: set[tuple[str, str]] = set()
    linked: set[Path] = set()
    while waiting:
        name, extra = item = waiting.pop()
        if item in seen:
            continue
        seen.add(item)
        dist = own.get(name) or metadata.distribution(name)
        if name not in own:
            linked |= {_SITE / file.parts[0] for file in dist.files or () if file.parts[0] != ".."}
        for text in dist.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                known = canonicalize_name(needed.name)
                version = (own.get(known) or metadata.distribution(known)).version
                assert version in needed.specifier, f"{name} needs {text}, and {version} is here"
                waiting += [(known, more) for more in ("", *needed.extras)]
    if copied:
        for entry in linked:
            _run("cp", "--recursive", "--reflink=auto", entry, venv.site)
    else:
        _link(venv, linked)
    return venv


def _name(dist: metadata.Distribution) -> str:
    return canonicalize_name(dist.metadata["Name"])


def _project_name(path: Path) -> str:
    return canonicalize_name(settings(path)["project"]["name"])


def _new_venv(folder: Path, wheels: tuple[Path, ...]) -> Venv:
    _run(uv(), "venv", "--quiet", "--offline", "--python", sys.executable, folder)
    venv = Venv(folder, wheels)
    venv.install(wheels)
    return venv


def _link(venv: Venv, entries: Iterable[Path]) -> None:
    others = venv.folder / "others"
    others.mkdir()
    for entry in entries:
        (others / entry.name).symlink_to(entry)
    (venv.site / "others.pth").write_text(f"{others}\n", encoding="utf-8")


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
