"""Packages of Spark Connect, pandas among them, that nothing else here needs.

The tests are to do without: these come into a folder of their own, once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support.fresh_venv import uv
from support.maven import cache_folder
from support.workspace import ROOT

PACKAGES = (
    "googleapis-common-protos==1.76.0",
    "grpcio",
    "grpcio-status==1.85.3",
    "numpy",
    "pandas==3.1.1",
    "protobuf",
    "pyyaml==6.0.3",
)
"""The root's pyproject.toml has the other versions."""


def packages() -> Path:
    """The folder with :data:`PACKAGES`, from the cache or the package registry."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder() / f"pipelines-1-{python}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        into = Path(temporary, "packages")
        command = [uv(), "pip", "install", "--quiet", "--python", sys.executable]
        done = subprocess.run(
            [*command, "--target", into, *PACKAGES],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"NO SPARK CONNECT, nothing about it is tested: {done.stdout[-500:]}")
        # Another run may have been faster.
        if not folder.is_dir():
            into.rename(folder)
    return folder
