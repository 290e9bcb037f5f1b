"""``python -m cdcfmt_core``: list what is installed, without the command line's libraries."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cdcfmt_core.listing import NOTHING, list_installed
from cdcfmt_core.registry import Registry, default_registry


def report(registry: Registry) -> tuple[str, bool]:
    """The listing as text, and whether it has no problems."""
    listing = list_installed(registry)
    lines: list[str] = []
    rows = [("FORMAT", "PACKAGE", "READS", "WRITES", "SUMMARY")]
    for item in listing.formats:
        package = f"{item.package} {item.version}".rstrip()
        writes = "yes" if item.spec.open_encoder else "no"
        rows.append((item.spec.name, package, "yes", writes, item.spec.summary))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)]
        lines.append("  ".join([*cells, row[4]]).rstrip())
    if not listing.formats:
        lines.append(NOTHING)
    lines += ["", "transports: " + ", ".join(listing.transports)]
    lines.append("type maps: " + ", ".join(listing.type_maps))
    lines += listing.notes
    lines += [f"broken: {problem}" for problem in listing.problems]
    return "\n".join(lines), not listing.problems


def main(arguments: Sequence[str] = ()) -> int:
    if arguments:
        print(
            "python -m cdcfmt_core takes no arguments; it lists what is installed", file=sys.stderr
        )
        return 2
    text, healthy = report(default_registry())
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Else Python would fail again when it flushes the buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
