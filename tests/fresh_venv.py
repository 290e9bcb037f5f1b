"""A virtual environment with wheels of this repository in it, and nothing of its tree.

What comes from elsewhere (pyspark, pyarrow, pytest) is linked from the environment that
runs the tests: downloading it again would take minutes and prove nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[1]
OWN = ("cdcfmt", "pyspark_cdcfmt", "_editable", "__editable")


def uv() -> str:
    """The uv that runs the tests."""
    found = os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".uv/bin/uv")
    assert Path(found).exists(), "uv is needed: make setup"
    return found


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

    def install(self, wheels: Iterable[Path]) -> None:
        """Install wheels, and only them."""
        options = ("--quiet", "--offline", "--no-deps", "--python", self.python)
        _run(uv(), "pip", "install", *options, *wheels)

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
                "PYTHONDONTWRITEBYTECODE": "1",
                **environment,
            },
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )


def make_venv(folder: Path, wheels: Iterable[Path]) -> Venv:
    """A new environment with these wheels."""
    _run(uv(), "venv", "--quiet", "--offline", "--python", sys.executable, folder)
    wheels = tuple(wheels)
    venv = Venv(folder, wheels)
    where = venv.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    site = Path(where.stdout.strip())
    others = folder / "others"
    others.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.lower().startswith(OWN) and entry.suffix != ".pth":
            (others / entry.name).symlink_to(entry)
    (site / "others.pth").write_text(f"{others}\n", encoding="utf-8")
    venv.install(wheels)
    return venv


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
