"""``cdcfmt convert`` by the compiled kernel, once a message shows the format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cdcfmt_core.codec import AUTO, Projection
from cdcfmt_core.events import Message
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine, Lines, one_by_one
from cdcfmt_toolkit.row_rules import row_rules
from pyspark_cdcfmt.cli.converter import Converter
from pyspark_cdcfmt.kernel.formats import find_format, is_installed
from pyspark_cdcfmt.kernel.learning import ObservedDecoder
from pyspark_cdcfmt.kernel.settings import NumberedTables, Shape, Unsupported
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.write.columnar import KernelWriter

if TYPE_CHECKING:
    from cdcfmt_cli.conversion import Conversion, LinesOfMessages

logger = open_logger("pyspark_cdcfmt")

_TIMES: Final = ("commit_ts", "source_time", "emit_time")
_COLUMNS: Final = ("kind", "op", *_TIMES, "before", "after", "extra")
_ROW_BYTES: Final = 100
_MAX_SAMPLED: Final = 64
"""Number of first messages that may determine the decoder."""


def convert(
    conversion: Conversion,
    blocks: Iterator[Message | BadLine | Lines],
    number: int,
    *,
    as_lines: bool,
) -> Iterator[Message | LinesOfMessages]:
    """The converted messages; ``number``: the number of the first message."""
    sampled = 0
    for block in blocks:
        for message in islice(one_by_one([block]), _MAX_SAMPLED - sampled):
            sampled += 1
            if not isinstance(message, Message):
                continue
            converter = _open(conversion, message, number, as_lines=as_lines)
            if converter is not None:
                yield from converter.parts(chain([block], blocks))
                return
        for message in one_by_one([block]):
            yield from conversion.convert(number, message)
            number += 1


def _open(
    conversion: Conversion, message: Message, number: int, *, as_lines: bool
) -> Converter | None:
    """Open a converter for messages like this one; None if the reference must convert them."""
    reader, rules = conversion.reader, row_rules(conversion.encoder)
    settings = reader.settings
    guesses = settings["protocol"].lower() == AUTO
    decoder = ObservedDecoder(reader.decoder)
    format_ = find_format(decoder, settings.codec, message, guesses=guesses)
    if format_ is None or not is_installed():
        return None
    writer = KernelWriter.open(
        "numbered_events",
        rules,
        ordered=False,
        line_format="message" if as_lines else None,
        json_texts=True,
    )
    if writer is None:
        return None
    policy = ValuePolicy(counts=reader.counts)
    if settings["sourceTimeZone"] is not None:
        policy.time_zone = settings["sourceTimeZone"]
    shape = Shape(
        schema=pa.schema([]),
        metadata=dict(zip(_COLUMNS, _COLUMNS, strict=True)),
        fields=(),
        projection=Projection(),
        event_filter=reader.event_filter,
        schemas=reader.schemas,
        policy=policy,
        inferred=False,
        split=False,
        events="variant",
        row_bytes=_ROW_BYTES,
        numbered=NumberedTables(),
    )
    try:
        return Converter(conversion, format_, shape, writer, number)
    except Unsupported as error:
        logger.debug("not by the kernel: %s", error)
        return None
