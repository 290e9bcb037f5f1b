"""Packages of Spark Connect, pandas among them, that nothing else here needs.

The tests are to do without: these come into a folder of their own, once.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.fresh_venv import cached_packages
from support.maven import UnavailableError

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
    try:
        return cached_packages(f"pipelines-2-{python}", PACKAGES, "--compile-bytecode")
    except UnavailableError as reason:
        pytest.skip(f"NO SPARK CONNECT, nothing about it is tested: {reason}")
