"""Exact versions of the kernel's crates: ``python -m support.crates`` pins ``Cargo.lock`` to them.

``Cargo.lock`` is not in git, as it names a host.  ``Cargo.toml`` has the exact versions of the
direct dependencies, and ``crates.txt`` those of all: wheels and tests are built with the same ones
everywhere.  After an update of ``Cargo.toml``, ``--write`` makes the list anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib

from support.workspace import KERNEL

LOCK, LIST = KERNEL / "Cargo.lock", KERNEL / "crates.txt"
_PASSES = 5


def listed() -> set[tuple[str, str]]:
    """Name and version of every crate in the list."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {(name, version) for name, _, version in (line.partition(" ") for line in lines)}


def locked() -> set[tuple[str, str]]:
    """Name and version of every crate in ``Cargo.lock``, without the kernel itself."""
    packages = tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]
    return {(each["name"], each["version"]) for each in packages if "source" in each}


def _compatible(version: str) -> tuple[str, ...]:
    """The part of a version that compatible ones share."""
    major, minor, *_ = version.split(".")
    return (major,) if major != "0" else (major, minor)


def pin() -> None:
    """Set each crate of ``Cargo.lock`` to its listed version; without Rust nothing is built.

    :raises SystemExit: if that is not possible.
    """
    if shutil.which("cargo") is None:
        return
    if not LOCK.exists():
        subprocess.run(["cargo", "generate-lockfile"], cwd=KERNEL, check=True)
    wanted = {(name, _compatible(version)): version for name, version in listed()}
    for _ in range(_PASSES):
        if locked() == listed():
            return
        # A crate that is updated may bring, or need no longer, others.
        for name, version in sorted(locked() - listed()):
            exact = wanted.get((name, _compatible(version)))
            if exact is not None and (name, version) in locked():
                update = ["cargo", "update", "--quiet", f"{name}@{version}", "--precise", exact]
                subprocess.run(update, cwd=KERNEL, check=False)
    if locked() != listed():
        differing = ", ".join(sorted(f"{name} {version}" for name, version in locked() ^ listed()))
        sys.exit(
            f"{LIST.name} and Cargo.toml do not fit: python -m support.crates --write: {differing}"
        )


def write() -> None:
    """Make the list anew from ``Cargo.lock``."""
    lines = (f"{name} {version}\n" for name, version in sorted(locked()))
    LIST.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write() if "--write" in sys.argv[1:] else pin()
