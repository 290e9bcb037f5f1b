"""Looks through an input for table schemas, before any of its rows is decoded.

A file is read by many tasks, and a row's schema may stand in another one's part of it:
whoever reads in pieces collects the schemas of the whole input first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cdcfmt_core.codec import DecoderContext, MarkedScan
from cdcfmt_core.decoding import AUTO, CERTAIN_ENOUGH, confidence
from cdcfmt_core.events import Message
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.schema_store import SchemaRecord


def open_schema_scan(
    options: Mapping[str, Any],
    codec_options: Mapping[str, Any],
    registry: Registry | None = None,
) -> MarkedScan | None:
    """A function that finds the schemas in a message; None where no format needs it.

    ``options`` and ``codec_options`` are those of
    :func:`~cdcfmt_core.decoding.open_message_decoder`.  A message that cannot be read has no
    schemas: decoding it will say why.
    """
    registry = registry or default_registry()
    auto = options["protocol"].lower() == AUTO
    codecs = registry.codecs().values() if auto else [registry.get_codec(options["protocol"])]
    scans = []
    for codec in codecs:
        if codec.scan_schemas is not None:
            own = {option.name: codec_options[option.name] for option in codec.options}
            context = DecoderContext(
                registry.get_type_map(options["typeMap"] or codec.type_map),
                max_message_bytes=options["maxMessageBytes"],
            )
            scans.append((codec, codec.scan_schemas(own, context)))
    if not scans:
        return None

    def scan(message: Message) -> Iterable[SchemaRecord]:
        for codec, scan_message in scans:
            try:
                records = list(scan_message(message))
            except Exception:
                continue
            if records and (not auto or confidence(codec, message) >= CERTAIN_ENOUGH):
                return records
        return ()

    marks: tuple[bytes, ...] = ()
    if len(scans) == 1:
        marks = getattr(scans[0][1], "marks", ())
    return MarkedScan(scan, marks)
