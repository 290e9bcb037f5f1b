"""What a format is to cdcfmt: a :class:`CodecSpec`, and what its decoder is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timezone, tzinfo
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.events import Event, Kind, Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.large_messages import ClaimCheckStore
from cdcfmt_core.options import Option
from cdcfmt_core.types import LogicalType

API_VERSION = 1
"""The plugin API of this core.  A plugin states the one that it was written for."""

DEFAULT_MAX_MESSAGE_BYTES = 128 << 20

Decode: TypeAlias = Callable[[Message], Iterable[Event]]
Encode: TypeAlias = Callable[[Event], Iterable[Message]]


@attrs.define
class DecoderContext:
    """What a decoder may use besides its own options; the same for every format.

    ``resolve_type`` is the type map in force.  ``time_zone`` is the source's, for wires
    whose timestamps have none.  ``event_filter`` lets a decoder skip what nobody wants
    before it decodes it; whoever calls the decoder filters again, so it may be ignored.
    ``claim_checks`` is where claim-check messages lie, or None.  ``counts`` collects what
    was done to values without being an error, by a text that names it.
    """

    resolve_type: Callable[[str], LogicalType]
    time_zone: tzinfo = timezone.utc
    event_filter: EventFilter = attrs.field(factory=EventFilter)
    claim_checks: ClaimCheckStore | None = None
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    counts: Counter[str] = attrs.field(factory=Counter)


@attrs.frozen
class CodecSpec:
    """A format: its name, its options and how to open it.

    ``open_decoder(options, context)`` and ``open_encoder(options)`` get validated options
    by declared name and return a plain callable; all state lives in what they return.
    A decoder yields the events of one message in order, raises
    :class:`~cdcfmt_core.errors.DecodeError` where the whole message is undecodable, and
    yields :class:`~cdcfmt_core.events.Corrupt` for a single bad row.

    ``sniff(message)`` answers from 0.0 (not mine) to 1.0 (nobody else's), cheaply: it
    looks at the bytes and never parses a whole message.
    """

    name: str
    summary: str
    spec_url: str
    open_decoder: Callable[[Mapping[str, Any], DecoderContext], Decode]
    sniff: Callable[[Message], float]
    emits: frozenset[Kind]
    options: tuple[Option, ...] = ()
    type_map: str = "mysql"
    open_encoder: Callable[[Mapping[str, Any]], Encode] | None = None
    aliases: tuple[str, ...] = ()
    api_version: int = API_VERSION
