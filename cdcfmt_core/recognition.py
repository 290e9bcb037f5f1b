"""Recognise a message's format with the formats' ``sniff``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import (
    INTERRUPTIONS,
    BrokenPluginError,
    DecodeError,
    describe,
    join_names,
    show,
)
from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.services import service
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


def not_recognised(
    codecs: Iterable[CodecSpec],
    message: Message,
    broken: Sequence[str] = (),
    schema: WriterSchema | None = None,
) -> DecodeError:
    """The error for a message that no format recognises; ``broken``: packages with formats."""
    if schema is not None:
        able = join_names(codec.name for codec in codecs if codec.sniff_schema is not None)
        return DecodeError(
            f"no installed format recognises the writer schema {schema.id} ({schema.kind}) of this "
            f"message (formats that read a schema registry: {able}); set the option protocol",
            sample=schema.text,
        )
    value = message.value or b""
    if (kind := service("foreign-value")(value, headers=message.headers)) is not None:
        return DecodeError(kind, sample=message.value)
    problem = service("value-problem")(value)
    problem = "" if problem is None else f"{problem}; "
    also = f"; broken: {join_names(broken)}, see cdcfmt formats" if broken else ""
    return DecodeError(
        f"{problem}no installed format recognises this message (installed: "
        f"{join_names(codec.name for codec in codecs)}{also}); set the option protocol, "
        "and largeMessageHandleCompression if it is compressed",
        sample=message.value,
    )


def of_another_format(
    own: CodecSpec,
    codecs: Iterable[CodecSpec],
    message: Message,
    error: DecodeError,
    schema: WriterSchema | None = None,
) -> DecodeError:
    """The error of a message that ``own`` cannot decode; names the format that it looks like."""
    if confidence(own, message, schema=schema) >= CERTAIN_ENOUGH:
        return error
    where = f"{error.field}: " if error.field else ""
    if schema is None and (
        kind := service("foreign-value")(message.value or b"", rows=False, headers=message.headers)
    ):
        return DecodeError(f"{kind} ({where}{error.reason})")
    best = recognise(codecs, message, schema)
    if best is None or best is own:
        return error
    other = DecodeError(
        f"protocol={own.name}, but the message looks like {best.name}: set "
        f"protocol={best.name} ({where}{error.reason})"
    )
    other.sample = error.sample
    return other
