"""The command group: command look-up, exit codes, error texts."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.text import Text

from cdcfmt_cli import guesses
from cdcfmt_cli.console import Quiet, gathered, print_error
from cdcfmt_cli.parameters import Context
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
from cdcfmt_core.texts import did_you_mean

EXIT_CODES = {
    0: "success",
    1: "the command found something wrong: corrupt messages (`validate`), only bad rows in a "
    "selection (`cat`), a broken plugin (`formats`), a broken installation (`doctor`), a requested "
    "table or message that is missing, or values that Spark changes (`validate --strict`)",
    2: "the command line is wrong: an unknown or invalid option, value, command or format",
    3: "the input cannot be read or the output cannot be written: missing file, full disk, "
    "missing library, no answer from a broker; run `drain` again to continue where it stopped",
    130: "interrupted (Ctrl-C)",
    141: "the reader of the output closed it, as in `cdcfmt cat … | head`",
}
"""Exit codes of the process; docs/cli.md and ``--help`` print this table."""

COMMANDS = (
    "formats", "sniff", "inspect", "cat", "stats", "validate", "convert", "drain", "schema",
    "schemas", "sample", "new", "doctor",
)  # fmt: skip

# Decoders accept images nested up to 1024 levels; each level takes a few stack frames.
_RECURSION_LIMIT = 10_000


class Group(click.Group):
    """Imports a command when it is called, and turns errors into texts and exit codes."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"cdcfmt_cli.commands.{cmd_name}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _wrapped():
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            guess = guesses.COMMANDS.get(name)
            near = f"; did you mean {guess}?" if guess else did_you_mean(name, COMMANDS)
            ctx.fail(f"No such command {name!r}{near}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))
        for name, flag in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
            if getattr(sys, name) is None:
                # Closed by the caller: writing data fails, notes are discarded.
                setattr(sys, name, open(os.open(os.devnull, flag), "w"))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Terminals understand UTF-8 even if the locale has another encoding.
                stream.reconfigure(encoding="utf-8", errors="replace")
        Quiet.on = False
        try:
            with gathered(), _wrapped():
                result = super().invoke(ctx)
                sys.stdout.flush()
        except KeyboardInterrupt:
            ctx.exit(130)
        except OSError as error:
            # Flushing the remaining buffer would fail again when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                ctx.exit(141)
            output = f"standard output cannot be written: {error.strerror or error}"
            raise Unreadable(str(error) if error.filename else output) from error
        except CdcfmtError as error:
            raise _failure(error) from error
        # A command returns True if it found something wrong.
        if result:
            ctx.exit(1)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), plain(text)) for code, text in EXIT_CODES.items()])


class Failure(click.ClickException):
    """An error: its text on stderr, and the exit code."""

    def show(self, file: Any = None) -> None:
        print_error(Text.assemble(("error: ", "bad"), guesses.spelled(self.message)))


class WrongUsage(click.UsageError):
    """click's error, broken between words on a narrow terminal."""

    def show(self, file: Any = None) -> None:
        if self.ctx is not None:
            print_error(click.unstyle(self.ctx.get_usage()))
            print_error(f"Try '{self.ctx.command_path} --help' for help.\n")
        print_error(f"Error: {self.format_message()}")


@contextmanager
def _wrapped() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise WrongUsage(error.format_message(), error.ctx) from None


class WrongCommand(Failure):
    exit_code = 2


class Unreadable(Failure):
    exit_code = 3


def plain(text: str) -> str:
    """Text of the docs without Markdown, for the terminal."""
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
    """Show the content of change-data-capture messages, and their errors.

    INPUT is a file, a directory, a glob, a URL that fsspec opens, - for standard input, or
    a topic, such as kafka://host:port/topic. Nothing here starts Spark.
    """
