"""Open decoders and encoders of a format, from options as users spell them (docs/encoding.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from cdcfmt_core.codec import ClaimChecks, Projection, format_options
from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder
from cdcfmt_core.encoding import ENCODING_OPTIONS, MessageEncoder
from cdcfmt_core.encoding_options import check_unpartitioned
from cdcfmt_core.errors import OptionError
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import check_once, split_by_owner, validate
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.services import service
from cdcfmt_core.writer_schemas import registry_options

OWNER = "cdcfmt"


def open_decoder(
    protocol: str,
    options: Mapping[str, Any] | None = None,
    *,
    registry: Registry | None = None,
    event_filter: EventFilter | None = None,
    projection: Projection = Projection(),  # noqa: B008 (frozen)
    counts: Counter[str] | None = None,
    schemas: SchemaStore | None = None,
    **more: Any,
) -> MessageDecoder:
    """A new decoder: ``open_decoder("acme-json", sourceTimeZone="UTC").decode(message)``.

    Options are the format's own and the common ones, as keywords or in ``options``; the protocol
    ``auto`` accepts those of any format.

    :param counts: gets the number of changes to values that are not errors.
    :param schemas: table schemas that are already known.
    :raises UnknownFormatError: for a format that is not installed.
    :raises OptionError: for an unknown option, or an invalid value.
    """
    registry = registry or default_registry()
    common, own = decoding_options(protocol, _together(protocol, options, more), registry)
    if event_filter is None:
        event_filter = EventFilter.of(common)
        event_filter.check()
    return MessageDecoder(
        common,
        own,
        event_filter,
        projection=projection,
        claim_checks=claim_check_reader(common),
        counts=counts,
        schemas=schemas,
        registry=registry,
    )


def open_encoder(
    protocol: str,
    options: Mapping[str, Any] | None = None,
    *,
    registry: Registry | None = None,
    claim_checks: object | None = None,
    counts: Counter[str] | None = None,
    partitions: int | None = None,
    now: Callable[[], int] | None = None,
    **more: Any,
) -> MessageEncoder:
    """A new encoder: ``open_encoder("acme-json", synthesizeCommitTs=True).encode(event)``.

    Options are given as in :func:`open_decoder`.

    :param partitions: number of partitions, for events that go to all of them.
    :param now: returns the time in microseconds, for events without an emit time.
    :param claim_checks: a folder that needs more than ``claimCheckStorageUri`` to open.
    :raises UnknownFormatError: for a format that is not installed.
    :raises OptionError: as :func:`open_decoder`, or if the format is read-only.
    """
    registry = registry or default_registry()
    codec = registry.get_codec(protocol)
    given = _together(protocol, options, more)
    declared = [*ENCODING_OPTIONS, *registry_options(given, registry)]
    own, common, _ = split_by_owner(given, codec.encode_options, declared, owner=OWNER)
    common = validate({**common, "protocol": protocol}, declared, owner=OWNER)
    encoder = MessageEncoder(
        common,
        validate(own, codec.encode_options, owner=f"format {codec.name}"),
        claim_checks=claim_checks or claim_check_writer(common),
        counts=counts,
        partitions=partitions,
        now=now,
        registry=registry,
    )
    if partitions is None:
        check_unpartitioned(common, "no number of partitions is given (convert: --partitions)")
    return encoder


def decoding_options(
    protocol: str, options: Mapping[str, Any], registry: Registry
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Validated options: the common ones, and the format's own (``auto``: of all formats)."""
    codecs = registry.codecs_of(protocol)
    of_formats = [option for codec in codecs for option in codec.options]
    declared = [*DECODING_OPTIONS, *registry_options(options, registry)]
    own, common, _ = split_by_owner(options, of_formats, declared, owner=OWNER)
    given = format_options(codecs, own)
    return validate({**common, "protocol": protocol}, declared, owner=OWNER), given


def _together(
    protocol: str, options: Mapping[str, Any] | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge ``options`` and ``more``.

    :raises OptionError: if an option is given twice, or ``protocol`` is another format.
    """
    given = {**(options or {}), **more}
    check_once(given)
    named = {str(value).lower() for name, value in given.items() if name.lower() == "protocol"}
    if not named <= {protocol.lower()}:
        raise OptionError(f"option protocol: {named.pop()}, but the first argument is {protocol}")
    return given


def claim_check_reader(
    common: Mapping[str, Any], storage_options: Mapping[str, Any] | None = None
) -> ClaimChecks | None:
    """A reader of ``claimCheckStorageUri``, if it is set."""
    uri = common["claimCheckStorageUri"]
    return None if uri is None else service("claim-check-reader")(uri, storage_options)


def claim_check_writer(
    common: Mapping[str, Any], storage_options: Mapping[str, Any] | None = None
) -> object | None:
    """A writer to ``claimCheckStorageUri``, if it is set."""
    uri, raw = common["claimCheckStorageUri"], common["claimCheckRawValue"]
    if uri is None:
        return None
    writer: object = service("claim-check-writer")(uri, storage_options, raw_value=raw)
    return writer
