"""All wheels of the workspace, in ``dist``: ``python tests/support/wheels.py x86_64 aarch64``.

``make wheels`` runs this, and then ``check_wheels.py``, which installs and reads with them.
The kernel's are manylinux wheels, one for each architecture that is named: zig links them against
an old glibc, whatever this machine's is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from support import crates
from support.fresh_venv import build_wheels, uv
from support.workspace import KERNEL, ROOT, projects

DIST = ROOT / "dist"
ARCHITECTURES = ("x86_64", "aarch64")

_MATURIN = ("tool", "run", "--from", "maturin==1.16.0", "--with", "ziglang==0.17.1", "maturin")


def target_of(architecture: str) -> str:
    """Rust's name for Linux with glibc on an architecture."""
    return f"{architecture}-unknown-linux-gnu"


def lacking(architecture: str) -> str | None:
    """Why the kernel cannot be built for an architecture, and what to do."""
    if architecture not in ARCHITECTURES:
        return f"{architecture}: the kernel is built for {' and '.join(ARCHITECTURES)}"
    without = f"TARGETS={next(each for each in ARCHITECTURES if each != architecture)}"
    target = target_of(architecture)
    if shutil.which("cargo") is None:
        return "cargo is not on PATH: install Rust 1.85 or newer"
    found = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", target],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode or not Path(found.stdout.strip()).is_dir():
        return (
            f"Rust's standard library for {target} is not installed: rustup target add {target}, "
            f"or leave it out with make wheels {without}"
        )
    return None


def build_kernel(architecture: str) -> None:
    """The kernel's wheel for one architecture."""
    arguments = ("--release", "--zig", "--target", target_of(architecture), "--out", str(DIST))
    subprocess.run([uv(), *_MATURIN, "build", *arguments], cwd=KERNEL, check=True)


def main(architectures: list[str]) -> None:
    """Build everything anew; exit with a reason where something is lacking."""
    for reason in filter(None, map(lacking, architectures)):
        sys.exit(f"cdcfmt: {reason}")
    shutil.rmtree(DIST, ignore_errors=True)
    build_wheels((path for path in projects() if path != KERNEL), DIST)
    if architectures:
        crates.pin()
    for architecture in architectures:
        build_kernel(architecture)


if __name__ == "__main__":
    main(sys.argv[1:])
