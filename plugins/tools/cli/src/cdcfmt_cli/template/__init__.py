"""The template of a format plugin: a complete package that passes the conformance kit.

Its files are in ``files``; in them and in their names ``@name@`` stands for the format and
``@package@`` for the Python package.  Messages of cases are stored as values only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from cdcfmt_core.errors import CdcfmtError, OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.known import packages
from cdcfmt_core.registry import default_registry
from cdcfmt_files.sources.whole_messages import wrap_line

_SUFFIX = ".in"


def create_plugin(name: str, folder: Path) -> Path:
    """Create the plugin ``cdcfmt-NAME`` in ``folder``, and return its own folder.

    :raises OptionError: if the name is invalid or taken, or the plugin's folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise OptionError(
            f"{name!r} is not a valid name of a format: lower-case letters and digits, with "
            "hyphens between words, such as acme-json"
        )
    if name == "core" or name in packages("formats") or _is_installed(name):
        raise OptionError(f"there is already a format {name!r}: choose another name")
    if name in packages("transports") or name in default_registry().transports():
        raise OptionError(f"there is already a transport {name!r}: choose another name")
    target = folder / f"cdcfmt-{name}"
    if target.exists():
        raise OptionError(f"{target} already exists: remove it, or choose another name")
    package = f"cdcfmt_{name.replace('-', '_')}"
    for path, text in _template():
        text = text.replace("@name@", name).replace("@package@", package)
        parts = [f"src/{package}" if part == "package" else part for part in path]
        file = target.joinpath(*parts)
        if file.name == "values.jsonl":
            file = file.with_name("messages.jsonl")
            lines = [wrap_line(Message(None, value.encode())) for value in text.splitlines()]
            text = b"\n".join([*lines, b""]).decode()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    return target


def _is_installed(name: str) -> bool:
    try:
        default_registry().get_codec(name)
    except LookupError:
        return False
    except CdcfmtError:
        # It is broken, or installed twice.
        return True
    return True


def _template() -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths and texts of the template's files."""

    def walk(folder: Traversable, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir():
                yield from walk(entry, (*path, entry.name))
            elif entry.name.endswith(_SUFFIX):
                name = entry.name.removesuffix(_SUFFIX)
                yield (*path, name), entry.read_text(encoding="utf-8")

    yield from walk(files(__name__).joinpath("files"), ())
