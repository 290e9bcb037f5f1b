"""Writes records as JSON Lines and CSV, and files atomically."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias
from uuid import uuid4

import click
from rich.highlighter import JSONHighlighter

from cdcfmt_cli.console import console
from cdcfmt_cli.inputs import CommandInput, is_input_file, is_topic
from cdcfmt_cli.json_text import RawJson, clean, lossless, to_json
from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.texts import harmless, without_secrets

Record: TypeAlias = dict[str, Any]


class OutputFile(click.Path):
    """An option for an output file; rejects topics, other URLs, and paths that end in a slash."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" in str(value):
            shown = f"{without_secrets(str(value))} is a"
            if is_topic(str(value)):
                writers = 'df.write.format("cdc") or writeStream'
                self.fail(f"{shown} topic: Spark writes topics, by {writers}.", param, ctx)
            self.fail(f"{shown} URL: name a local file.", param, ctx)
        if str(value).endswith((os.sep, "/")):
            self.fail(f"{value} is a folder: add the name of a file.", param, ctx)
        return super().convert(value, param, ctx)


NUMBERS = ("string", "exact")
"""``string``: numbers that a double cannot hold are text.  ``exact``: all are JSON numbers."""


def print_json(value: Any, numbers: str = "string") -> None:
    """Print a value as one line of JSON; ``numbers`` is one of :data:`NUMBERS`."""
    write_json([value], live=False, numbers=numbers)


def write_json(records: Iterable[Record], *, live: bool, numbers: str) -> None:
    """Write one line per record, coloured on a terminal; with ``live``, flush each line."""
    out = console() if sys.stdout.isatty() else None
    for record in records:
        text = to_json(record if numbers == "exact" else lossless(record))
        if out is None:
            _write(text + "\n", live)
        else:
            out.print(JSONHighlighter()(text), soft_wrap=True)


def print_lines(text: str) -> None:
    """Print text unchanged, but with control characters escaped on a terminal."""
    _write(text + "\n", False)


@contextmanager
def open_output(path: Path, source: CommandInput) -> Iterator[IO[bytes]]:
    """Write to a temporary file that gets its name at the end; an error keeps the existing file.

    Pipes and devices are written directly.

    :raises OptionError: if the input includes this file.
    :raises SinkError: if it cannot be written.
    """
    # Replaces the target of a symbolic link, not the link.
    target, aside = Path(os.path.realpath(path)), None
    try:
        there = path.exists()
        if there and is_input_file(path, source):
            raise OptionError(f"{path} is a file of the input: write to another one")
        # /dev/stdout may be a file that the shell has opened.
        if (path.is_file() or not there) and not str(path).startswith(("/dev/", "/proc/")):
            if there:
                path.open("ab").close()  # fails if the file is write-protected
            aside = target.with_name(f".cdcfmt-{uuid4().hex}")
        with (aside or path).open("wb") as file:
            yield file
        if aside is not None:
            if there:
                shutil.copymode(target, aside)
            aside.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SinkError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if aside is not None:
            with suppress(OSError):
                aside.unlink()


def write_csv(
    records: Iterable[Record], columns: Sequence[str], *, live: bool, numbers: str
) -> None:
    """Write RFC 4180 CSV with LF; NULL is an empty cell and empty text ``""``, as in Spark's CSV.

    ``numbers`` applies to JSON in the cells.
    """
    _write(",".join(map(_quoted, columns)) + "\n", live)
    for record in records:
        shown = record if numbers == "exact" else lossless(record)
        _write(",".join(_csv_cell(shown.get(name)) for name in columns) + "\n", live)


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if type(value) in (str, RawJson):
        return _quoted(clean(value))
    if isinstance(value, tuple) and hasattr(value, "text") and not isinstance(value.text, bytes):
        return _quoted(clean(value.text))
    text = to_json(value)
    return _quoted(text[1:-1] if text.startswith('"') else text)


def _quoted(text: str) -> str:
    if text and not any(mark in text for mark in ',"\n\r'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _write(text: str, live: bool) -> None:
    if sys.stdout.isatty():
        text = harmless(text)
    # Data is always UTF-8, independent of the locale.
    sys.stdout.buffer.write(text.encode())
    if live:
        sys.stdout.buffer.flush()
