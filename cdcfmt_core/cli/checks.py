"""The checks of ``doctor``: Python, packages, plugins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec

from cdcfmt_core.listing import NOTHING, list_installed
from cdcfmt_core.registry import default_registry, version_of
from cdcfmt_core.transport import Check

_OLDEST_PYTHON = (3, 11)

_EXTRAS = (
    ("fsspec", "fsspec", "files", "reading files"),
    ("zstandard", "zstandard", "files", "reading .zst files"),
    ("cramjam", "cramjam", "compression", "messages compressed with snappy"),
    ("lz4", "lz4", "compression", "messages compressed with lz4"),
)
"""Module, distribution, extra of cdcfmt-core that installs it, and purpose."""


def check_python() -> Iterator[Check]:
    text = f"Python {sys.version.split()[0]} at {sys.executable}"
    if sys.version_info >= _OLDEST_PYTHON:
        yield Check("Python", "ok", text)
    else:
        yield Check("Python", "bad", text, "cdcfmt needs Python 3.11 or newer")


def check_packages() -> Iterator[Check]:
    yield Check("Packages", "ok", f"cdcfmt-core {version_of('cdcfmt-core')}")
    for module, dist, extra, purpose in _EXTRAS:
        if find_spec(module) is not None:
            yield Check("Packages", "ok", f"{dist} {version_of(dist)}: {purpose}")
        else:
            yield Check(
                "Packages",
                "warn",
                f"{dist} is missing: {purpose}",
                f"pip install 'cdcfmt-core[{extra}]'",
            )


def check_plugins() -> Iterator[Check]:
    listing = list_installed(default_registry())
    if not listing.formats:
        yield Check("Formats", "bad", "no format is installed", NOTHING.rpartition(": ")[2])
    for item in listing.formats:
        yield Check("Formats", "ok", f"{item.spec.name} ({item.package} {item.version})")
    for transport in listing.transports:
        yield Check("Formats", "ok", f"transport {transport}")
    for note in listing.notes:
        yield Check("Formats", "warn", note)
    for problem in listing.problems:
        yield Check(
            "Formats",
            "bad",
            problem,
            "reinstall it, or disable it with CDCFMT_DISABLED_PLUGINS",
        )
