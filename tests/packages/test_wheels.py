"""Errors of ``make wheels``."""

from __future__ import annotations

import shutil

import pytest
from support import wheels


def test_error_names_the_missing_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wheels.lacking("riscv64") == "riscv64: the kernel is built for x86_64 and aarch64"
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nonexistent")
        assert wheels.lacking("x86_64") == "cargo is not on PATH: install Rust 1.85 or newer"


@pytest.mark.skipif(shutil.which("rustc") is None, reason="needs Rust")
def test_a_target_without_a_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "target_of", lambda architecture: f"{architecture}-no-such-system")
    reason = wheels.lacking("aarch64")
    assert reason is not None
    assert "for aarch64-no-such-system is not installed: rustup target add aarch64-no-" in reason
    assert reason.endswith("make wheels TARGETS=x86_64")
