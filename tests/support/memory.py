"""How much memory a process has taken."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_mib() -> int:
    """The largest resident set of this program, in MiB.

    ``getrusage`` counts on Linux what the parent had when it started the program, too.
    """
    if _STATUS.exists():
        found = re.search(r"VmHWM:\s+([0-9]+) kB", _STATUS.read_text())
        if found is not None:
            return int(found[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
