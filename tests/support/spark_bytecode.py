"""Add bytecode to the zips of pyspark and py4j, which Spark puts first on its workers' path.

They have sources alone, which every Python process of Spark compiles when it starts: 0.7 s.
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from pathlib import Path

import pyspark


def main() -> None:
    for path in (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"):
        add_bytecode(path)


def add_bytecode(path: Path) -> None:
    with zipfile.ZipFile(path) as sources:
        # Two thirds are pyspark's own tests, through whose names each look-up goes.
        names = [name for name in sources.namelist() if "/tests/" not in name]
        if any(name.endswith(".pyc") for name in names):
            return
        texts = {name: sources.read(name) for name in names}
    # The package manager's own copy may be the same file: it stays as it is.
    written = path.with_suffix(".part")
    with zipfile.ZipFile(written, "w") as both:
        for name, text in texts.items():
            both.writestr(name, text)
            if name.endswith(".py"):
                both.writestr(f"{name}c", bytecode(name, text))
    os.replace(written, path)


def bytecode(name: str, source: bytes) -> bytes:
    """What Python imports without a look at the source; other versions of it take the source."""
    code = compile(source, name, "exec", dont_inherit=True)
    return importlib._bootstrap_external._code_to_hash_pyc(  # type: ignore[attr-defined,no-any-return]
        code, importlib.util.source_hash(source), checked=False
    )


if __name__ == "__main__":
    main()
