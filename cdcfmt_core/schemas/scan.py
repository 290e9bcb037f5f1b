"""Scan an input for table schemas before any row is decoded.

Many tasks read a file, and a row's schema may be in another task's part: the schemas of the whole
input are collected first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cdcfmt_core.codec import CodecSpec, DecoderContext, MarkedScan
from cdcfmt_core.events import Message
from cdcfmt_core.registry import AUTO, Registry, default_registry
from cdcfmt_core.schemas.statements import Statement
from cdcfmt_core.schemas.store import SchemaRecord, SchemaStore
from cdcfmt_core.toolkit.recognition import CERTAIN_ENOUGH, confidence


def open_schema_scan(
    options: Mapping[str, Any],
    codec_options: Mapping[str, Any],
    registry: Registry | None = None,
) -> MarkedScan[SchemaRecord] | None:
    """A function that finds the schemas in a message; None if no format needs it.

    ``options`` and ``codec_options`` are those of
    :func:`~cdcfmt_core.decoding.MessageDecoder`.  An unreadable message has no schemas;
    decoding it reports the error.
    """
    return _open(options, codec_options, registry, ("scan_schemas",))


def open_input_scan(
    options: Mapping[str, Any],
    codec_options: Mapping[str, Any],
    registry: Registry | None = None,
) -> MarkedScan[SchemaRecord | Statement] | None:
    """Like :func:`open_schema_scan`, plus DDL statements; only for scans of a whole input.

    Types from only a part of the statements could be outdated.
    """
    return _open(options, codec_options, registry, SCANS)


SCANS = ("scan_schemas", "scan_statements")
"""The fields of :class:`CodecSpec` with scans that run before rows are decoded."""


def _open(
    options: Mapping[str, Any],
    codec_options: Mapping[str, Any],
    registry: Registry | None,
    kinds: Sequence[str],
) -> MarkedScan[Any] | None:
    registry = registry or default_registry()
    auto = options["protocol"].lower() == AUTO
    scans: list[tuple[CodecSpec, Any]] = []
    for codec in registry.codecs_of(options["protocol"]):
        for open_scan in (getattr(codec, kind) for kind in kinds):
            if open_scan is not None:
                own = codec.own_options(codec_options)
                context = DecoderContext(
                    registry.get_type_map(options["typeMap"] or codec.type_map),
                    SchemaStore(),
                    max_message_bytes=options["maxMessageBytes"],
                )
                scans.append((codec, open_scan(own, context)))
    if not scans:
        return None

    def scan(message: Message) -> Iterable[Any]:
        return _scan(scans, message, auto)

    marks = [getattr(scan, "marks", ()) for _, scan in scans]
    one_partition = all(getattr(scan, "one_partition", False) for _, scan in scans)
    return MarkedScan(scan, sum(marks, ()) if all(marks) else (), one_partition)


def _scan(
    scans: Sequence[tuple[CodecSpec, Any]], message: Message, auto: bool
) -> Iterator[SchemaRecord | Statement]:
    for codec, scan_message in scans:
        try:
            records = list(scan_message(message))
        except Exception:
            continue
        if records and (not auto or confidence(codec, message) >= CERTAIN_ENOUGH):
            yield from records
            return
