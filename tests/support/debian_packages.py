"""Debian's packages, unpacked instead of installed, once, into the user's cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from support.maven import UnavailableError, cache_folder


def unpacked(
    name: str,
    packages: Sequence[str],
    prepare: Callable[[Path, Path], None] = lambda root, folder: None,
) -> Path:
    """The folder ``name`` of the cache with the files of packages.

    :param prepare: called with the unpacked files and the folder that they will be in.
    :raises UnavailableError: where there is no apt-get, or it finds no packages.
    """
    folder = cache_folder() / f"{name}-debian"
    if folder.is_dir():
        return folder
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise UnavailableError(f"there is no apt-get, which brings {name}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        work = Path(temporary)
        done = subprocess.run(
            ["apt-get", "download", *packages],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode:
            raise UnavailableError(f"apt-get downloads no {name}: {done.stderr[-500:]}")
        root = work / "root"
        for package in work.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, root], check=True, timeout=120)
        prepare(root, folder)
        if not folder.is_dir():
            root.rename(folder)
    return folder


def libraries_of(*packages: str) -> list[str]:
    """The packages of shared libraries that packages depend on, as this release names them."""
    done = subprocess.run(
        ["apt-cache", "depends", *packages], capture_output=True, text=True, check=False
    )
    words = [line.split() for line in done.stdout.splitlines()]
    named = {line[1] for line in words if line[:1] == ["Depends:"] and line[1].startswith("lib")}
    # Python itself runs on these.
    return sorted(named - {"libc6", "libgcc-s1", "libstdc++6"})
