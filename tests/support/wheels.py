"""All wheels of the workspace, in ``dist``: ``python -m support.wheels x86_64 aarch64``.

``make wheels`` runs this, and then ``check_wheels.py``, which installs and reads with them.
The kernel's are manylinux wheels, one for each architecture that is named: zig links them against
an old glibc, whatever this machine's is.

``--wheelhouse``, for ``make wheelhouse``: the wheels of all dependencies, too, for this machine.

``--release``, for ``make release-check``: source archives, too, and each wheel from its archive.
What this machine cannot build of the kernel is named and left out.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
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


def build_kernel(architecture: str, source: Path = KERNEL) -> None:
    """The kernel's wheel for one architecture."""
    arguments = ("--release", "--zig", "--target", target_of(architecture), "--out", str(DIST))
    # The crates that were compiled before serve an unpacked archive, too.
    environment = {"CARGO_TARGET_DIR": str(KERNEL / "target"), **os.environ}
    command = [uv(), *_MATURIN, "build", *arguments]
    subprocess.run(command, cwd=source, env=environment, check=True)


def release(architectures: list[str]) -> None:
    """Source archives of all packages, and their wheels, built from these."""
    for project in projects():
        if project != KERNEL:
            subprocess.run([uv(), "build", "--quiet", project, "--out-dir", DIST], check=True)
    reasons = {each: lacking(each) for each in architectures}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        print(f"cdcfmt: without the kernel's wheel: {reason}", flush=True)
    if shutil.which("cargo") is None:
        return
    crates.pin()
    subprocess.run([uv(), *_MATURIN, "sdist", "--out", DIST], cwd=KERNEL, check=True)
    (archive,) = DIST.glob("cdcfmt_kernel-*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        for architecture in (each for each, reason in reasons.items() if reason is None):
            build_kernel(architecture, source)


def collect_dependencies() -> None:
    """Put the wheels of all dependencies beside ours, for installations without an index."""
    wheels = {path.name.partition("-")[0]: path for path in DIST.glob("*-any.whl")}
    wheels |= {path.name: path for path in DIST.glob(f"*_{platform.machine()}.whl")}
    bridge = wheels.pop("pyspark_cdcfmt")
    # As files, since an index may have other packages of these names.
    wanted = [*map(str, wheels.values()), f"{bridge}[all,spark,java]"]
    pip = (
        uv(),
        "tool",
        "run",
        "--python",
        sys.executable,
        "pip",
        "wheel",
        "--wheel-dir",
        str(DIST),
    )
    subprocess.run([*pip, *wanted], check=True)


def main() -> None:
    """Build everything anew; exit with a reason where something is lacking."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("architectures", nargs="*")
    parser.add_argument("--wheelhouse", action="store_true", help="dependencies, too")
    parser.add_argument("--release", action="store_true", help="source archives, too")
    arguments = parser.parse_args()
    shutil.rmtree(DIST, ignore_errors=True)
    if arguments.release:
        release(arguments.architectures)
        return
    for reason in filter(None, map(lacking, arguments.architectures)):
        sys.exit(f"cdcfmt: {reason}")
    build_wheels((path for path in projects() if path != KERNEL), DIST)
    if arguments.architectures:
        crates.pin()
    for architecture in arguments.architectures:
        build_kernel(architecture)
    if arguments.wheelhouse:
        collect_dependencies()


if __name__ == "__main__":
    main()
