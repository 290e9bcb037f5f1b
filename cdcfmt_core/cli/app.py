"""The group of commands: look-up, exit codes, errors as texts."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Any

import click
from rich.text import Text

from cdcfmt_core.cli.console import Quiet, error_console
from cdcfmt_core.cli.parameters import Context
from cdcfmt_core.cli.warnings import gathered
from cdcfmt_core.errors import (
    BrokenPluginError,
    CdcfmtError,
    MissingDependencyError,
    OptionError,
    PluginApiError,
    SinkError,
    SourceError,
    UnknownFormatError,
)

EXIT_CODES = {
    0: "all is well",
    1: "the command found something wrong: corrupt messages (`validate`), a broken plugin "
    "(`formats`), a broken installation (`doctor`), no table or message that was asked for, or "
    "values that Spark changes (`validate --strict`)",
    2: "the command line is wrong: an option, a value, a command or a format that is not there",
    3: "the input cannot be read, or the output not be written: no such file, a full disk, no "
    "library for it, no answer from a broker; `drain` run again goes on where it was",
    130: "interrupted (Ctrl-C)",
    141: "the reader of the output went away, as in `cdcfmt cat … | head`",
}
"""Exit codes of the process; docs/cli.md and ``--help`` print this table."""

COMMANDS = (
    "formats", "sniff", "inspect", "cat", "stats", "validate", "convert", "drain", "schema",
    "schemas", "new", "doctor",
)  # fmt: skip

# Images may be nested as deep as decoders let them (1024), at a few frames a level.
_RECURSION_LIMIT = 10_000


class Group(click.Group):
    """Loads a command when it is asked for, and turns errors into texts and exit codes."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(
            f"cdcfmt_core.cli.commands.{cmd_name}"
        ).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))
        for name, flag in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
            if getattr(sys, name) is None:
                # Closed by the caller: data that goes there is an error, notes are lost.
                setattr(sys, name, open(os.open(os.devnull, flag), "w"))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Terminals speak UTF-8, also where the locale does not say so.
                stream.reconfigure(encoding="utf-8", errors="replace")
        Quiet.on = False
        try:
            with gathered():
                result = super().invoke(ctx)
                sys.stdout.flush()
        except KeyboardInterrupt:
            ctx.exit(130)
        except OSError as error:
            # What is still buffered would fail once more while Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                ctx.exit(141)
            output = f"standard output cannot be written: {error.strerror or error}"
            raise Unreadable(str(error) if error.filename else output) from error
        except CdcfmtError as error:
            raise _failure(error) from error
        return result

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), plain(text)) for code, text in EXIT_CODES.items()])


class Failure(click.ClickException):
    """An error's text on stderr, and the exit code."""

    def show(self, file: Any = None) -> None:
        console = error_console()
        console.print(Text.assemble(("error: ", "bad"), self.message), soft_wrap=True)


class WrongCommand(Failure):
    exit_code = 2


class Unreadable(Failure):
    exit_code = 3


def plain(text: str) -> str:
    """A text of the docs as the terminal shows it."""
    return text.replace("`", "")


_UNREADABLE = (
    SourceError,
    SinkError,
    MissingDependencyError,
    BrokenPluginError,
    PluginApiError,
)


def _failure(error: CdcfmtError) -> Failure:
    if isinstance(error, OptionError | UnknownFormatError):
        return WrongCommand(str(error))
    if isinstance(error, _UNREADABLE):
        return Unreadable(str(error))
    return Failure(str(error))


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="cdcfmt-core", prog_name="cdcfmt")
def app() -> None:
    """What is in these change-data-capture messages, and what is wrong with them.

    INPUT is a file, a directory, a glob, a URL that fsspec opens, - for standard input, or
    a topic, such as kafka://host:port/topic. Nothing here starts Spark.
    """
