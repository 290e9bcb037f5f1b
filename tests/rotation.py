"""Which quarter of the tests that take long a run of `make test` has.

``python tests/rotation.py`` prints its number.  The commit determines it: the same tests run on
every machine, and a few commits run all.  Outside of git it prints ``all``.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

PARTS: Final = 4


def of_commit() -> str:
    """The number for the commit that is checked out: 0, 1, 2 or 3, or else ``all``."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return str(int(done.stdout, 16) % PARTS) if done.returncode == 0 else "all"


if __name__ == "__main__":
    print(of_commit())
