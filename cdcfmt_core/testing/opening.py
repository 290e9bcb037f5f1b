"""Decoders and encoders of one format, from options as users spell them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import AUTO, DECODING_OPTIONS, MessageDecoder, open_message_decoder
from cdcfmt_core.encoding import ENCODING_OPTIONS, MessageEncoder, open_message_encoder
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.large_message_output import ClaimCheckWriter
from cdcfmt_core.large_messages import ClaimCheckStore
from cdcfmt_core.options import Option, validate
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources.claim_checks import open_claim_check_store

OWNER = "the test"


def open_decoder(
    protocol: str,
    options: Mapping[str, Any],
    *,
    registry: Registry | None = None,
    event_filter: EventFilter | None = None,
    projection: Projection = Projection(),  # noqa: B008 (frozen)
    counts: Counter[str] | None = None,
    schemas: SchemaStore | None = None,
) -> MessageDecoder:
    """A new decoder; ``options`` are the format's own and everyone's.

    With ``auto`` they may be those of any format.

    :raises OptionError: for an option that nobody knows, or a value that it cannot have.
    """
    registry = registry or default_registry()
    common, own = decoding_options(protocol, options, registry)
    if event_filter is None:
        event_filter = EventFilter(
            starting_commit_ts=common["startingCommitTs"], ending_commit_ts=common["endingCommitTs"]
        )
    return open_message_decoder(
        common,
        own,
        event_filter,
        projection=projection,
        claim_checks=claim_checks_of(common),
        counts=counts,
        schemas=schemas,
        registry=registry,
    )


def open_encoder(
    protocol: str,
    options: Mapping[str, Any],
    *,
    registry: Registry | None = None,
    claim_checks: ClaimCheckWriter | None = None,
    counts: Counter[str] | None = None,
    partitions: int | None = None,
    now: Callable[[], int] | None = None,
) -> MessageEncoder:
    """A new encoder; ``options`` are the format's own and everyone's.

    :raises OptionError: as :func:`open_decoder`, or if the format is only read.
    """
    registry = registry or default_registry()
    codec = registry.get_codec(protocol)
    common, own = _apart(options, codec.encode_options)
    return open_message_encoder(
        validate({"protocol": protocol, **common}, ENCODING_OPTIONS, owner=OWNER),
        validate(own, codec.encode_options, owner=f"format {codec.name}"),
        claim_checks=claim_checks,
        counts=counts,
        partitions=partitions,
        now=now,
        registry=registry,
    )


def decoding_options(
    protocol: str, options: Mapping[str, Any], registry: Registry
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Everyone's options and the format's own, or with ``auto`` every format's, validated."""
    auto = protocol.lower() == AUTO
    codecs = registry.codecs().values() if auto else [registry.get_codec(protocol)]
    common, own = _apart(options, [option for codec in codecs for option in codec.options])
    given: dict[str, Any] = {}
    for codec in codecs:
        mine = _apart(own, codec.options)[1]
        given |= validate(mine, codec.options, owner=f"format {codec.name}")
    return validate({"protocol": protocol, **common}, DECODING_OPTIONS, owner=OWNER), given


def claim_checks_of(common: Mapping[str, Any]) -> ClaimCheckStore | None:
    uri = common["claimCheckStorageUri"]
    return None if uri is None else open_claim_check_store(uri)


def _apart(
    options: Mapping[str, Any], own: Iterable[Option]
) -> tuple[dict[str, Any], dict[str, Any]]:
    names = {option.name.lower() for option in own}
    return (
        {name: value for name, value in options.items() if name.lower() not in names},
        {name: value for name, value in options.items() if name.lower() in names},
    )
