"""The crates of the kernel have exact versions, direct and indirect ones."""

from __future__ import annotations

import tomllib

import pytest
from support.crates import KERNEL, LOCK, listed, locked


def test_direct_dependencies_are_exact() -> None:
    manifest = tomllib.loads((KERNEL / "Cargo.toml").read_text(encoding="utf-8"))
    direct = manifest["dependencies"] | manifest["dev-dependencies"]
    exact = {
        name: wanted if isinstance(wanted, str) else wanted["version"]
        for name, wanted in direct.items()
    }
    assert all(version.startswith("=") for version in exact.values()), exact
    assert {(name, version.removeprefix("=")) for name, version in exact.items()} <= listed()


@pytest.mark.skipif(not LOCK.exists(), reason="the kernel was not built here")
def test_the_kernel_is_built_with_the_listed_crates() -> None:
    assert locked() == listed(), "run PYTHONPATH=tests python -m support.crates"
