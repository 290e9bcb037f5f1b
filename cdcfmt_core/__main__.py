"""``python -m cdcfmt_core``: what is installed, what overrides what, what is broken and why."""

from __future__ import annotations

import sys

from cdcfmt_core.registry import Registry, default_registry


def report(registry: Registry) -> tuple[str, bool]:
    """The listing as text, and whether all is well."""
    lines: list[str] = []
    codecs = registry.codecs()
    plugins = registry.plugins()
    rows = [("FORMAT", "PACKAGE", "READS", "WRITES", "SUMMARY")]
    for spec in codecs.values():
        owner = next((p for p in plugins if spec.name in p.codecs), None)
        package = f"{owner.dist} {owner.version}" if owner else "?"
        writes = "yes" if spec.open_encoder else "no"
        rows.append((spec.name, package, "yes", writes, spec.summary))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)]
        lines.append("  ".join([*cells, row[4]]).rstrip())
    if not codecs:
        lines.append("no format is installed; for example: pip install cdcfmt-canal-json")
    maps = [f"{name} ({p.dist})" for p in plugins for name in p.type_maps]
    lines += ["", "type maps: " + ", ".join(["mysql (cdcfmt-core)", *maps])]
    lines += registry.overrides()
    problems = registry.conflicts()
    problems += [f"broken: {info.error}" for info in plugins if info.error is not None]
    lines += problems
    lines += [f"disabled: {info.entry_point} of {info.dist}" for info in plugins if info.disabled]
    return "\n".join(lines), not problems


def main() -> int:
    text, healthy = report(default_registry())
    print(text)
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
