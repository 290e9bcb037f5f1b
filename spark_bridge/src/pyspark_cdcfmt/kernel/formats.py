"""Detects the format of messages, and opens a kernel for it."""

from __future__ import annotations

import functools
import json
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Message, TableSchema
from cdcfmt_core.plugins import ResolvedTypes
from cdcfmt_core.recognition import CERTAIN_ENOUGH, confidence
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.texts import open_logger
from cdcfmt_files.sources import BadLine, Lines
from cdcfmt_toolkit.dialects import reads_text
from cdcfmt_toolkit.encodings import Encoding, Encodings
from cdcfmt_toolkit.layout import Layout, WriterLayouts, layouts_of, writer_layouts_of
from cdcfmt_toolkit.zone_offsets import describe_zone
from pyspark_cdcfmt.kernel.learning import ObservedDecoder
from pyspark_cdcfmt.kernel.settings import Shape, Unsupported, describe_settings
from pyspark_cdcfmt.kernel.writers import id_headers
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.versions import KERNEL_INSTALL, NO_KERNEL

try:
    import cdcfmt_kernel
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

logger = open_logger("pyspark_cdcfmt")


def is_installed() -> bool:
    """Whether the package cdcfmt-kernel is installed."""
    return _INSTALLED


@functools.cache
def warn_without_kernel() -> None:
    """Warn once in a session of Spark, on each machine; outside of Spark once in a process."""
    if not is_installed() and _is_first("without-kernel"):
        logger.warning("%s; %s", NO_KERNEL, KERNEL_INSTALL)


def _is_first(name: str) -> bool:
    """Whether no other process of this JVM has asked: they share a folder, which goes with it."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    if not os.path.basename(folder).startswith("blockmgr-"):
        return True
    try:
        os.close(os.open(os.path.join(folder, f"cdcfmt-{name}"), os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        pass
    return True


@attrs.frozen
class Format:
    """A format that the kernel reads.

    :ivar writers: of messages that name their writer schemas; then ``layouts`` is empty.
    :ivar headers: how names of headers begin on which the layouts of ``writers`` depend, beside the
        topic; None: they depend on neither.
    :ivar recognises: whether a message has this format, if formats may be mixed; the reference
        decodes the others.
    """

    protocol: str
    layouts: Sequence[Layout]
    recognises: Callable[[Message], bool] | None = None
    writers: WriterLayouts | None = None
    headers: tuple[str, ...] | None = None

    @property
    def keyed(self) -> bool:
        """Whether the format reads keys of messages."""
        if self.writers is not None:
            return True
        return self.layouts[0].max_events is not None or any(each.keyed for each in self.layouts)

    def value(self, message: Message | BadLine) -> bytes | None:
        """The value, if the kernel may read it; else None."""
        if isinstance(message, BadLine):
            return None
        known = self.recognises is None or self.recognises(message)
        return message.value if known else None

    def reads(self, lines: Lines | MessageBatch) -> bool:
        """Whether the kernel may read these messages in one piece, as messages of this format.

        A file may begin with a byte order mark.
        """
        if isinstance(lines, MessageBatch):
            return self.recognises is None or all(map(self.recognises, lines))
        if lines.data.startswith(BOM_UTF8):
            return False
        if self.writers is not None:
            # A value has any bytes, so also those of a line break.
            return lines.are_whole
        if self.recognises is None:
            return True
        return not lines.are_whole and all(map(self.recognises, lines.messages()))


def find_format(
    decoder: ObservedDecoder,
    codec_options: Mapping[str, Any],
    message: Message,
    *,
    type_map: str | None,
    guesses: bool,
) -> Format | None:
    """The format of a message, if the kernel reads it.

    :param type_map: the option ``typeMap``.
    :param guesses: whether other messages may have other formats.
    """
    codec = decoder.codec_of(message)
    if codec is None:
        return None
    try:
        options = codec.own_options(codec_options)
        types = default_registry().type_map_for(codec, type_map)
        layouts = [_with_dialect(each, types) for each in layouts_of(codec, options)]
        writers = writer_layouts_of(codec, options)
    except CdcfmtError as error:
        # An error here only costs time: the reference decodes everything.
        _warn(f"no layouts of {codec.name} for the kernel: {error}")
        return None
    if writers is not None and decoder.is_framed(message):
        # Only messages with a known writer schema are read, so there is nothing to recognise.
        headers, layout_of = writers.headers, writers.layout_of
        if of_ids := id_headers(decoder, message):
            headers = (*(headers or ()), *of_ids)

        def layout_of_dialect(schema: WriterSchema, of: Message) -> Layout | None:
            layout = layout_of(schema, of)
            return None if layout is None else _with_dialect(layout, types)

        writers = WriterLayouts(layout_of_dialect)
        return Format(codec.name, (), writers=writers, headers=headers)
    records = [each for each in layouts if each.avro is not None]
    if not records or message.value is None or message.value.startswith(b"{"):
        records = [each for each in layouts if each.avro is None]
    if not records:
        return None

    def recognises(message: Message) -> bool:
        return confidence(codec, message) >= CERTAIN_ENOUGH

    return Format(codec.name, records, recognises if guesses else None)


def _with_dialect(layout: Layout, types: ResolvedTypes) -> Layout:
    """The layout with the encoding dialect-text of columns that the type map reads."""

    def encodings(value: bytes, table: TableSchema) -> Encodings:
        found = dict(layout.encodings(value, table))
        for column in table.columns:
            own = found.get(column.name)
            if own is not None and reads_text(own, column, types):
                found[column.name] = Encoding("dialect-text", branches=own.branches)
        return found

    return attrs.evolve(layout, encodings=encodings)


def open_kernel(format_: Format, shape: Shape, max_message_bytes: int) -> cdcfmt_kernel.Kernel:
    """Open a kernel.

    :raises Unsupported: if the kernel can read no message of this format.
    """
    try:
        settings = describe_settings(
            format_.layouts,
            shape,
            max_message_bytes,
            framed=format_.writers is not None,
            headers=format_.headers,
        )
        settings["zone"] = describe_zone(shape.policy.time_zone)
        return cdcfmt_kernel.Kernel(json.dumps(settings))
    except Unsupported:
        raise
    except Exception as error:
        reason = f"a layout that the kernel cannot take: {type(error).__name__}: {error}"
        _warn(reason)
        raise Unsupported(reason) from error


@functools.cache
def _warn(text: str) -> None:
    """Warn once per process."""
    logger.warning(text)
