"""The release in ``dist``; ``make release-check`` runs this when it has built it.

Every source archive and wheel has metadata that an index accepts; a fresh environment takes our
packages from ``dist``, and all others from an index; the quickstart and the examples run there.
``RELEASE`` is the tag of a release, ``REPOSITORY`` the address that it is published from; without
them, these are not checked.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from cdcfmt_core.known import packages
from support.check_wheels import kernels, wheels_here
from support.doc_snippets import snippets
from support.fresh_venv import Venv, uv
from support.spark_settings import SESSION
from support.wheels import ARCHITECTURES, DIST
from support.workspace import KERNEL, ROOT, projects, settings

VERSION: str = settings(ROOT)["project"]["version"]
NAMES = {folder: str(settings(folder)["project"]["name"]) for folder in projects()}
BRIDGE = NAMES[ROOT / "spark_bridge"]
EXAMPLES = sorted((ROOT / "docs/example").iterdir())


def own() -> list[str]:
    """The packages that this machine can take from ``dist``."""
    without = set() if platform.machine() in kernels() else {KERNEL}
    return [name for folder, name in NAMES.items() if folder not in without]


def extras() -> str:
    """All extras of the bridge; without a wheel of the kernel, all others."""
    if NAMES[KERNEL] in own():
        return "all,spark"
    known = settings(ROOT / "spark_bridge")["project"]["optional-dependencies"]
    return ",".join(set(known) - {"all", "kernel"})


def install(venv: Venv, requirement: str) -> None:
    """Our packages from ``dist``, and what they require from an index."""
    pip = (uv(), "pip", "install", "--quiet", "--python", venv.python, "--find-links", DIST)
    # uv's cache has wheels of the same names from before.
    anew = [argument for name in own() for argument in ("--refresh-package", name)]
    subprocess.run([*pip, *anew, requirement], cwd=ROOT, check=True)


def record(wheel: Path) -> set[str]:
    """The files of a wheel with their hashes."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/RECORD"))
        lines = archive.read(name).decode().splitlines()
    return {line for line in lines if not line.startswith(name)}


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Venv:
    made = Venv(tmp_path_factory.mktemp("release") / "venv")
    subprocess.run([uv(), "venv", "--quiet", made.folder], check=True)
    install(made, f"{BRIDGE}[{extras()}]")
    return made


def test_every_package_has_an_archive_and_a_wheel() -> None:
    for name in own():
        stem = f"{name.replace('-', '_')}-{VERSION}"
        assert [*DIST.glob(f"{stem}.tar.gz")], name
        assert [*DIST.glob(f"{stem}-*.whl")], name


def test_an_index_accepts_the_metadata() -> None:
    files = [*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")]
    subprocess.run([uv(), "tool", "run", "twine", "check", "--strict", *files], check=True)


def test_a_release_is_complete() -> None:
    tag = os.environ.get("RELEASE") or pytest.skip("no RELEASE")
    assert tag == f"v{VERSION}"
    assert set(kernels()) == set(ARCHITECTURES)
    heading = rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$"
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_urls_belong_to_the_repository() -> None:
    repository = os.environ.get("REPOSITORY") or pytest.skip("no REPOSITORY")
    for address in settings(ROOT)["project"]["urls"].values():
        assert f"{address}/".startswith(f"{repository}/")


def test_the_extras_bring_the_packages_of_dist(venv: Venv) -> None:
    """All but the kit, which authors of plugins install."""
    for name in {*own()} - {"cdcfmt-testing"}:
        stem = f"{name.replace('-', '_')}-{VERSION}"
        (installed,) = venv.site.glob(f"{stem}.dist-info/RECORD")
        (wheel,) = (path for path in DIST.glob(f"{stem}-*.whl") if path in wheels_here())
        assert record(wheel) <= set(installed.read_text("utf-8").splitlines()), name
    subprocess.run([uv(), "pip", "check", "--python", venv.python], check=True)


def test_readme_commands_are_installed(venv: Venv) -> None:
    run = subprocess.run(
        [venv.folder / "bin/cdcfmt", "formats"], capture_output=True, text=True, check=True
    )
    assert all(name in run.stdout for name in (*packages("formats"), *packages("transports")))


def test_the_quickstart_runs(venv: Venv) -> None:
    blocks = [each for each in snippets("docs/quickstart.md") if each.runs and not each.needs]
    code = "\n".join([SESSION, *(block.code for block in blocks)])
    done = venv.run("-c", code, **venv.spark_environment())
    assert done.returncode == 0, done.stderr[-4000:]
    for block in blocks:
        assert (block.prints or "").strip() in done.stdout, block.id


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_run(venv: Venv, example: Path) -> None:
    install(venv, f"{example}[test]")
    alone = ("-c", str(example / "pyproject.toml"), "--confcutdir", str(example))
    done = venv.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *alone, str(example / "tests"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
