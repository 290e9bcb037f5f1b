"""Recognise a message's format with the formats' ``sniff``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import INTERRUPTIONS, BrokenPluginError, describe, show
from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.texts import warn_broken

CERTAIN_ENOUGH = 0.5
"""Minimum confidence; a message has the format with the highest confidence."""


def confidence(
    codec: CodecSpec,
    message: Message,
    note: Callable[[BrokenPluginError], None] | None = None,
    schema: WriterSchema | None = None,
) -> float:
    """The result of the format's ``sniff``; 0.0 if it fails or is out of range.

    :param note: gets the failure; by default, the first one of a format is logged.
    :param schema: the writer schema of a framed message, for ``sniff_schema`` instead.
    """
    try:
        if schema is None:
            found = codec.sniff(message)
        else:
            found = 0.0 if codec.sniff_schema is None else codec.sniff_schema(schema)
    except INTERRUPTIONS:
        raise
    except BaseException as error:
        reason = f"failed: {describe(error)}"
    else:
        if isinstance(found, float | int) and 0.0 <= found <= 1.0:
            return float(found)
        reason = f"returned {show(found)}: return a number from 0.0 to 1.0"
    what = f"sniff of format {codec.name!r} ({codec.package})"
    if note is not None:
        note(BrokenPluginError(f"{what} {reason}", f"set protocol={codec.name} to read it"))
    else:
        # Only this message is not recognised: it must not change how others are read.
        warn_broken(what, f"{reason}; such messages are recognised by other formats only")
    return 0.0


def recognise(
    codecs: Iterable[CodecSpec], message: Message, schema: WriterSchema | None = None
) -> CodecSpec | None:
    """The format that is most confident of the message; None if none is certain enough."""

    def sure(codec: CodecSpec) -> float:
        return confidence(codec, message, schema=schema)

    best = max(codecs, key=sure, default=None)
    return None if best is None or sure(best) < CERTAIN_ENOUGH else best


def is_others(codecs: Iterable[CodecSpec], message: Message) -> bool:
    """Whether a format without framings recognises the message's own bytes."""
    return (best := recognise(codecs, message)) is not None and best.sniff_schema is None
