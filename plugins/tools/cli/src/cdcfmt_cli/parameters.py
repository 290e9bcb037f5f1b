"""click's parameters and ``--help``, made from the option tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import click

from cdcfmt_cli.console import Quiet
from cdcfmt_cli.guesses import hint_of_flag, kebab
from cdcfmt_cli.inputs import transport_of_url
from cdcfmt_cli.settings import OWNER, SECTIONS, parse_pairs, parse_settings
from cdcfmt_cli.writers import NUMBERS
from cdcfmt_core.options import Option, validate

F = TypeVar("F", bound=Callable[..., Any])

_INPUTS = (
    "Files, directories and globs, also as URLs that fsspec opens; - for standard input; or a "
    "topic, such as kafka://host:port/topic?option=value."
)
_METAVARS = {
    "string": "TEXT",
    "int": "N",
    "bytes": "SIZE",
    "duration": "DURATION",
    "list": "NAME,…",
    "time": "TIME",
    "timezone": "ZONE",
}


TIMES = {"startingSourceTime": "--since", "endingSourceTime": "--until"}
ALIASES = {"protocol": "--format", **TIMES}


class HelpFormatter(click.HelpFormatter):
    """Bold headings and coloured names; click removes the styles outside a terminal."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(click.style(prog, bold=True), args, prefix)

    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, bold=True))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        styled = [(click.style(name, fg="cyan"), text) for name, text in rows]
        super().write_dl(styled, col_max, col_spacing)


class Context(click.Context):
    formatter_class = HelpFormatter

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # --includeTables is --include-tables.
        self.token_normalize_func = kebab


class SectionOption(click.Option):
    """An option that ``--help`` lists under the heading ``section``."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        self.section = section
        super().__init__(*args, **kwargs)


class Command(click.Command):
    """A command whose options are listed by section."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            group = None if ctx.parent is None else ctx.parent.command
            others: list[click.Command | None] = []
            if isinstance(group, click.Group):
                others += (group.get_command(ctx, name) for name in group.list_commands(ctx))
            hint = hint_of_flag(error.option_name, self, filter(None, others))
            if not hint:
                raise
            raise click.UsageError(f"No such option: {error.option_name}{hint}", ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Input": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if param.name == "paths":
                sections["Input"] = [("INPUT...", _INPUTS)]
            elif record is not None:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        # The command's own options come first.
        for section, records in sections.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("See also"):
            formatter.write_text(
                "cdcfmt --help for the exit codes; cdcfmt formats NAME for a format's options."
            )


def declare(
    name: str, short_help: str, cls: type[Command] = Command
) -> Callable[[Callable[..., Any]], click.Command]:
    """Like ``click.command``, with options by section; ``short_help`` is for the command list."""
    return click.command(
        name,
        cls=cls,
        short_help=short_help,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def reads(
    own: Iterable[Option] = (),
    *,
    section: str = "Options",
    more: Callable[[], Iterable[str]] = tuple,
    aliases: Mapping[str, str] = ALIASES,
) -> Callable[[F], F]:
    """Add the inputs and the reading options to a command, as ``paths`` and ``settings``.

    :param own: Further options of this command, under the heading ``section``.
    :param more: Returns further names for ``-o`` that the command validates itself.
    :param aliases: Other flags of options, by their names.
    """
    own = tuple(own)
    tables = {section: own, **SECTIONS}
    names = {_key(option): option.name for table in tables.values() for option in table}

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(pairs: tuple[str, ...], **given: Any) -> Any:
            options = {name: given.pop(key) for key, name in names.items()}
            transport = next(filter(None, map(transport_of_url, given["paths"])), None)
            settings = parse_settings(options, pairs, own, more() if pairs else (), transport)
            return function(settings=settings, **given)

        wrapped: Any = call
        wrapped = quiet_option(pairs_option(wrapped))
        for heading, table in reversed(tables.items()):
            for option in reversed(table):
                other = aliases.get(option.name)
                wrapped = _click_option(option, heading, () if other is None else (other,))(wrapped)
        result: F = click.argument("paths", nargs=-1, required=True, metavar="INPUT...")(wrapped)
        return result

    return decorate


pairs_option = click.option(
    "-o",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    cls=SectionOption,
    section="How to read",
    help="Any option by its name in Spark, including options of formats "
    "(cdcfmt formats NAME lists them) and of topics.",
)
"""``-o name=value``, as ``pairs``."""

quiet_option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda _, __, given: setattr(Quiet, "on", given),
    help="No notes, warnings, progress or next command; errors are still printed.",
)
"""``--quiet``, for commands that print on stderr."""


def table_options(table: tuple[Option, ...]) -> Callable[[F], F]:
    """Add the options of a table to a command, validated, as ``values``; ``-o`` sets them, too."""
    names = {_key(option): option.name for option in table}
    of_pairs = {option.name.lower(): option.name for option in table}

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(**given: Any) -> Any:
            texts = {name: given.pop(key) for key, name in names.items()}
            named = {name: text for name, text in texts.items() if text is not None}
            others = []
            for name, text in parse_pairs(given["pairs"]):
                if name.lower() in of_pairs:
                    named[of_pairs[name.lower()]] = text
                else:
                    others.append(f"{name}={text}")
            given["pairs"] = tuple(others)
            return function(values=validate(named, table, owner=OWNER), **given)

        wrapped: Any = call
        for option in reversed(table):
            wrapped = _click_option(option, "Options")(wrapped)
        result: F = wrapped
        return result

    return decorate


numbers_option = click.option(
    "--numbers",
    type=click.Choice(NUMBERS),
    default=NUMBERS[0],
    show_default=True,
    help="In JSON: write numbers that a double cannot hold as strings, or write every number "
    "as a number, for parsers that keep all digits.",
)
"""``--numbers``, for commands that print values as JSON."""


def _key(option: Option) -> str:
    return kebab(option.name).replace("-", "_")


def _click_option(
    option: Option, section: str, others: tuple[str, ...] = ()
) -> Callable[[Any], Any]:
    flag = f"--{kebab(option.name)}"
    if option.type == "bool":
        flag += f"/--no-{kebab(option.name)}"
    text = option.help.replace("`", "")
    if option.default not in (None, (), False):
        text += f" [{default_text(option)}]"
    kwargs: dict[str, Any] = {}
    if option.type == "choice":
        kwargs["type"] = click.Choice(option.choices, case_sensitive=False)
    elif option.type != "bool":
        kwargs["metavar"] = _METAVARS[option.type]
    return click.option(
        flag,
        *others,
        _key(option),
        default=None,
        help=text,
        cls=SectionOption,
        section=section,
        **kwargs,
    )


def default_text(option: Option) -> str:
    """The default as a user would write it; empty if there is none."""
    value = option.default
    if value is None or value == ():
        return ""
    if option.type == "bytes" and value % (1 << 20) == 0:
        return f"{value >> 20}m"
    if isinstance(value, timedelta):
        units = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
        whole = (unit for unit, size in units.items() if not value % size)
        unit = next(whole, "s")
        return f"{value // units.get(unit, timedelta(seconds=1))}{unit}"
    return str(value).lower() if option.type == "bool" else str(value)
