"""``cdcfmt convert``: rewrites messages of one format in another."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from cdcfmt_cli.console import note
from cdcfmt_cli.conversion import Conversion
from cdcfmt_cli.inputs import CommandInput, open_input
from cdcfmt_cli.interruption import until_interrupted
from cdcfmt_cli.parameters import TIMES, Command, declare, reads
from cdcfmt_cli.printing import number
from cdcfmt_cli.progress import no_bars
from cdcfmt_cli.reading import Reader, note_corrupt
from cdcfmt_cli.settings import TABLE_OPTION, Settings, parse_pairs
from cdcfmt_cli.writers import OutputFile, open_output
from cdcfmt_core.encoding import ENCODING_OPTIONS, MessageEncoder
from cdcfmt_core.errors import EncodeError, OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.opening import open_encoder
from cdcfmt_core.texts import harmless
from cdcfmt_files.sources import wrap_line
from cdcfmt_files.sources.compression import COMPRESSIONS, compression_of, open_compressed


class _Command(Command):
    """Also lists the options of writing, which are separate from those of reading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("How to write (-w NAME=VALUE)"):
            formatter.write_dl(
                (option.name, option.help.replace("`", ""))
                for option in ENCODING_OPTIONS
                if option.name != "protocol"
            )


def _from_is_protocol(function: Callable[..., None]) -> Callable[..., None]:
    """Make ``--from`` an alias of ``--protocol``."""

    @functools.wraps(function)
    def call(source_format: str | None, protocol: str | None, **given: Any) -> None:
        if source_format and protocol and source_format.lower() != protocol.lower():
            raise OptionError(f"--from {source_format} and --protocol {protocol}: give one of them")
        function(protocol=source_format or protocol, **given)

    return call


@declare("convert", "Rewrite messages of one format in another.", cls=_Command)
@_from_is_protocol
@reads([TABLE_OPTION], aliases=TIMES)
@click.option("--to", "target", required=True, metavar="FORMAT", help="The format to write.")
@click.option(
    "--from", "source_format", metavar="FORMAT", help="The format to read: the same as --protocol."
)
@click.option(
    "-w",
    "written",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of writing: one of those below, or of the format.",
)
@click.option(
    "--lines",
    type=click.Choice(["message", "value"]),
    default="message",
    show_default=True,
    help="Lines of whole messages as JSON with base64 key and value, or of bare values.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Assign each message its partition out of N.",
)
@click.option(
    "--output",
    type=OutputFile(),
    metavar="FILE",
    help="Write to this file instead of stdout, compressed if the name ends in .gz or .zst. An "
    "error keeps the existing file.",
)
def command(
    paths: tuple[str, ...],
    settings: Settings,
    target: str,
    written: tuple[str, ...],
    lines: str,
    partitions: int | None,
    output: Path | None,
) -> None:
    """Read the events of INPUT and write them as messages of another format.

    An event that the format cannot express stops the command with exit code 1, unless
    -w unsupportedEvents=skip.
    """
    counts: Counter[str] = Counter()
    encoder = _open_encoder(target, written, partitions, counts)
    if lines == "value" and encoder.needs_keys:
        raise OptionError(
            f"--lines value omits keys, but reading {target} needs them: use --lines message"
        )
    no_bars(streams=output is None)
    source = open_input(paths, settings)
    reader = Reader(source, settings, follows_kind=True)
    conversion = Conversion(reader, encoder, counts)
    messages = 0
    shown = sys.stdout.isatty()
    with _opened(output, source) as file:
        # For a terminal, control characters of each line are escaped.
        as_lines = lines == "message" and partitions is None and bool(output or not shown)
        with until_interrupted() as interruption:
            conversion.check(_open_encoder(target, written, partitions, Counter()))
            for part in conversion.messages(as_lines=as_lines):
                if isinstance(part, tuple):
                    file.write(part[0])
                    messages += part[1]
                    continue
                messages += 1
                line = wrap_line(part) if lines == "message" else _value(part)
                if shown and not output:
                    line = harmless(line.decode("utf-8", "replace")).encode()
                file.write(line + b"\n")
        kept = "" if output is None else f"; {output} is not written"
        interruption.end(f"{number(messages)} messages were converted{kept}")
        reader.check_names()
    if output is not None:
        note(f"written: {number(messages)} messages, {output}")
    for text, count in sorted((reader.counts + counts).items()):
        note(f"{text}: {number(count)}")
    note_corrupt(reader.hidden, paths)


def _open_encoder(
    target: str, written: Iterable[str], partitions: int | None, counts: Counter[str]
) -> MessageEncoder:
    """The encoder with the options of ``-w``.

    :raises OptionError: for an unknown option.
    """
    options = {name.replace("-", ""): value for name, value in parse_pairs(written, "-w")}
    if "protocol" in (name.lower() for name in options):
        raise OptionError("-w protocol: choose the format with --to")
    return open_encoder(target, options, partitions=partitions, counts=counts)


def _value(message: Message) -> bytes:
    value = message.value or b""
    if b"\n" in value or message.value is None:
        raise EncodeError(
            "a value of this format is not a line of text (it is missing or contains a newline): "
            "use --lines message"
        )
    return value


@contextmanager
def _opened(output: Path | None, source: CommandInput) -> Iterator[Any]:
    if output is None:
        yield sys.stdout.buffer
        return
    compression = _compression_of(output)
    with open_output(output, source) as file, closing(open_compressed(file, compression)) as opened:
        yield opened


def _compression_of(output: Path) -> str:
    with suppress(SourceError):
        if (compression := compression_of(output.name) or "none") in COMPRESSIONS:
            return compression
    raise OptionError(f"--output {output}: use .gz, .zst or no suffix instead of {output.suffix}")
