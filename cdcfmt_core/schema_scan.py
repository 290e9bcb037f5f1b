"""Scan an input for table schemas before any row is decoded.

Many tasks read a file, and a row's schema may be in another task's part: the schemas of the whole
input are collected first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cdcfmt_core.codec import AUTO, CodecSpec, DecoderContext, MarkedScan
from cdcfmt_core.errors import (
    INTERRUPTIONS,
    CdcfmtError,
    DecodeError,
    MissingDependencyError,
    SourceError,
    describe,
)
from cdcfmt_core.events import Message
from cdcfmt_core.recognition import CERTAIN_ENOUGH, confidence, is_others
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.schemas.records import SchemaRecord, Statement
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import warn_broken
from cdcfmt_core.writer_schemas import open_writer_schemas, split

SCANS = ("scan_schemas", "scan_statements")
"""The fields of :class:`CodecSpec` with scans that run before rows are decoded."""


def open_input_scan(
    options: Mapping[str, Any],
    codec_options: Mapping[str, Any],
    registry: Registry | None = None,
    kinds: Sequence[str] = SCANS,
) -> MarkedScan[Any] | None:
    """A function that finds the schemas and DDL statements in a message; None if no format has any.

    Only for scans of a whole input, as types from a part of the statements could be outdated.

    ``options`` and ``codec_options`` are those of
    :func:`~cdcfmt_core.decoding.MessageDecoder`.  An unreadable message has no schemas;
    decoding it reports the error.
    """
    registry = registry or default_registry()
    auto = options["protocol"].lower() == AUTO
    scans: list[tuple[CodecSpec, Any]] = []
    codecs = registry.codecs_of(options["protocol"])
    for codec in codecs:
        try:
            found = list(open_scans(codec, options, codec_options, registry, kinds))
        except CdcfmtError as error:
            if not auto:
                raise
            warn_broken(f"format {codec.name!r} is not read:", str(error))
            continue
        scans += ((codec, scan) for scan in found)
    if not scans:
        return None

    writers = open_writer_schemas(options, None, registry) if auto else None

    def scan(message: Message) -> Iterable[Any]:
        # The scans of other formats would take its first byte for a framing.
        others = writers and (message.value or b"")[:1] == b"\0" and is_others(codecs, message)
        own = [each for each in scans if each[0].sniff_schema is None] if others else scans
        for codec, records in _scan(own, message):
            framed = split(writers, message, "value", codecs)
            schema = None if framed is None else framed.schema
            if not auto or confidence(codec, message, schema=schema) >= CERTAIN_ENOUGH:
                return records
        return ()

    marks = [getattr(scan, "marks", ()) for _, scan in scans]
    one_partition = all(getattr(scan, "one_partition", False) for _, scan in scans)
    return MarkedScan(scan, sum(marks, ()) if all(marks) else (), one_partition)


def open_scans(
    codec: CodecSpec,
    options: Mapping[str, Any],
    codec_options: Mapping[str, Any],
    registry: Registry,
    kinds: Iterable[str] = SCANS,
) -> Iterator[Any]:
    """The scans of one format.

    :raises CdcfmtError: if one cannot be opened; the format cannot be read without it.
    """
    for kind in kinds:
        if (open_scan := getattr(codec, kind)) is not None:
            context = DecoderContext(
                registry.type_map_for(codec, options["typeMap"]),
                SchemaStore(),
                writer_schemas=open_writer_schemas(options, None, registry),
                max_message_bytes=options["maxMessageBytes"],
            )
            yield open_scan(codec.own_options(codec_options), context)


open_schema_scan = partial(open_input_scan, kinds=SCANS[:1])
"""Like :func:`open_input_scan`, without statements: also for a part of an input."""


_OF_DAMAGE = (DecodeError, ValueError, LookupError, ArithmeticError, RecursionError)
"""Errors that damaged messages cause; decoding them reports it."""


def _scan(
    scans: Sequence[tuple[CodecSpec, Any]], message: Message
) -> Iterator[tuple[CodecSpec, list[SchemaRecord | Statement]]]:
    for codec, scan_message in scans:
        try:
            records = list(scan_message(message))
        except _OF_DAMAGE:
            continue
        except (*INTERRUPTIONS, MissingDependencyError, SourceError):
            raise
        except BaseException as error:
            what = f"scan for schemas of format {codec.name!r} ({codec.package})"
            warn_broken(what, f"failed for a message: {describe(error)}")
            continue
        if records:
            yield codec, records
