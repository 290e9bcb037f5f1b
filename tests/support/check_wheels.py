"""The wheels in ``dist`` as users get them; ``make wheels`` runs this when it has built them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from run import load

from support.fresh_venv import Venv, make_venv, uv
from support.pythons import interpreters, oldest_patches
from support.wheels import ARCHITECTURES, DIST
from support.workspace import projects

MACHINES = {"x86_64": 62, "aarch64": 183}
"""``e_machine`` in the head of an ELF file."""

READ = """
import sys
import cdcfmt_kernel, pyspark_cdcfmt
from cdcfmt_files.sources import FileSplit, read_lines
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

split = FileSplit(sys.argv[1], 0, None, None)
messages = [message for lines in read_lines(split) for message in lines.messages()]
options = parsed({"protocol": "canal-json", "table": "bench.orders"})
schema = inferred_schema(messages, options)
result = check_equal(messages, schema, options, lines=read_lines(split))
print(cdcfmt_kernel.__file__, pyspark_cdcfmt.__file__)
print(len(messages), result.by_kernel, result.rows.num_rows)
"""


def kernels() -> dict[str, Path]:
    """The kernel's wheels by architecture."""
    found = {path.stem.rpartition("manylinux")[2]: path for path in DIST.glob("cdcfmt_kernel-*")}
    return {a: path for a in ARCHITECTURES for end, path in found.items() if end.endswith(a)}


def wheels_here() -> list[Path]:
    """The wheels that this machine takes, that of the kernel first."""
    here = kernels().get(platform.machine())
    others = [path for path in DIST.glob("*.whl") if path not in kernels().values()]
    return others if here is None else [here, *others]


@pytest.fixture
def with_kernel() -> None:
    if platform.machine() not in kernels():
        pytest.skip(f"no wheel of the kernel for {platform.machine()}")


@pytest.fixture
def without_rust(monkeypatch: pytest.MonkeyPatch) -> None:
    program = uv()
    folders = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not any(Path(folder, name).exists() for name in ("cargo", "rustc"))
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    monkeypatch.setenv("UV", program)
    assert shutil.which("cargo") is shutil.which("rustc") is None


def test_every_package_has_a_wheel() -> None:
    assert kernels()
    assert len(list(DIST.glob("*.whl"))) == len(projects()) - 1 + len(kernels())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_kernel_is_for_the_machine_of_its_tag(architecture: str) -> None:
    wheel = kernels().get(architecture)
    if wheel is None:
        pytest.skip("not built")
    _, _, python, abi, system = wheel.stem.split("-")
    assert (python, abi) == ("cp311", "abi3")
    assert f"manylinux_2_17_{architecture}" in system.split(".")
    with zipfile.ZipFile(wheel) as archive:
        (library,) = (name for name in archive.namelist() if name.endswith(".so"))
        head = archive.read(library)[:20]
    assert head[:6] == b"\x7fELF\x02\x01"
    assert int.from_bytes(head[18:20], "little") == MACHINES[architecture]


@pytest.mark.usefixtures("with_kernel", "without_rust")
def test_kernel_reads_a_golden_file(tmp_path: Path) -> None:
    """All wheels in an environment of their own; the rows are the reference's."""
    lines = tmp_path / "orders.jsonl"
    golden = [message.value or b"" for message in load("canal-json")[2:]]
    lines.write_bytes(b"".join(value + b"\n" for value in golden))
    venv = make_venv(tmp_path / "venv", wheels_here())
    done = venv.run("-c", READ, str(lines))
    assert done.returncode == 0, done.stderr
    *modules, messages, by_kernel, rows = done.stdout.split()
    assert all(Path(module).is_relative_to(venv.site) for module in modules)
    assert len(golden) == int(messages) == int(by_kernel) + 1
    assert int(rows) > len(golden)


@pytest.mark.usefixtures("with_kernel", "without_rust")
def test_pure_wheels_support_every_python(tmp_path: Path) -> None:
    found = interpreters()
    here = wheels_here()[0]
    for version in oldest_patches(list(found)):
        venv = Venv(tmp_path / ".".join(map(str, version)))
        subprocess.run(
            [uv(), "venv", "-q", "--offline", "--python", found[version], venv.folder], check=True
        )
        venv.install([here])
        done = venv.run("-c", "import sys, cdcfmt_kernel; print(*sys.version_info[:3])")
        assert done.stdout.split() == [*map(str, version)], done.stderr
    assert sys.version_info[:2] in {version[:2] for version in found}
