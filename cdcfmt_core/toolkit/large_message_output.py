"""Writing large messages as TiCDC does: compressed, cut down to the key, or as claim checks.

The way back is :mod:`cdcfmt_core.toolkit.large_messages`, which names the sources.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import attrs

from cdcfmt_core.errors import EncodeError, OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.toolkit.large_messages import import_compression

RECORD_OVERHEAD: Final = 36
"""What a Kafka record takes beside key and value, as TiCDC counts it: five varints of 32
bits, one of 64, and a byte (``MaxRecordOverhead``)."""

PRODUCER_MAX_MESSAGE_BYTES: Final = 10 << 20
"""TiCDC's default of ``max-message-bytes``."""

KeyValue: TypeAlias = tuple[bytes | None, bytes]


def open_compressor(compression: str) -> Callable[[bytes], bytes] | None:
    """A function that compresses one value; None for ``none``."""
    if compression == "none":
        return None
    module = import_compression(compression)

    def compress_lz4(data: bytes) -> bytes:
        result: bytes = module.compress(data)
        return result

    def compress_snappy(data: bytes) -> bytes:
        return bytes(module.snappy.compress_raw(data))

    return compress_lz4 if compression == "lz4" else compress_snappy


def _random_name() -> str:
    return f"{uuid.uuid4()}.json"


@attrs.define
class ClaimCheckWriter:
    """The folder for messages that are too large.

    ``write_file(name, body)`` makes one file directly in it, and fails rather than leave a
    part of one.  ``raw_value`` writes the bare value in place of key and value.
    """

    root: str
    write_file: Callable[[str, bytes], None]
    raw_value: bool = False
    new_name: Callable[[], str] = _random_name

    def write(self, key: bytes | None, value: bytes) -> str:
        """The location of the file that now holds the message, for the message that leads to it.

        :raises EncodeError: if the file cannot be written.
        """
        name = self.new_name()
        body = value
        if not self.raw_value:
            wrapped = {
                "key": None if key is None else base64.b64encode(key).decode(),
                "value": base64.b64encode(value).decode(),
            }
            body = json.dumps(wrapped, separators=(",", ":")).encode()
        try:
            self.write_file(name, body)
        except OSError as error:
            raise EncodeError(
                f"claim check {name} cannot be written to {self.root} ({error}); "
                "set claimCheckStorageUri to a folder that can be written"
            ) from error
        return f"{self.root.rstrip('/')}/{name}"


@attrs.define
class LargeMessageOutput:
    """Compression of values, and the replacement of messages that are still too large."""

    max_message_bytes: int = PRODUCER_MAX_MESSAGE_BYTES
    handle: Literal["none", "claim-check", "handle-key-only"] = "none"
    compress: Callable[[bytes], bytes] | None = None
    claim_checks: ClaimCheckWriter | None = None

    def compressed(self, value: bytes) -> bytes:
        return value if self.compress is None else self.compress(value)

    def require_plain(self, name: str) -> None:
        """Refuse options that the format ``name`` does not have: compression and large messages.

        :raises OptionError: if either is wanted.
        """
        if self.compress is not None or self.handle != "none":
            raise OptionError(
                f"options largeMessageHandleOption and largeMessageHandleCompression: {name} has "
                "neither; leave them at none"
            )

    def fits(self, key: bytes | None, value: bytes, framing: int = 0) -> bool:
        """Whether a message of this key and value may be sent; ``framing`` is what else it has."""
        size = len(value) + RECORD_OVERHEAD + framing
        if key is not None:
            size += len(key)
        return size <= self.max_message_bytes

    def replace(
        self,
        message: KeyValue,
        rewrite: Callable[[str | None], KeyValue],
        *,
        framing: int = 0,
        stored: KeyValue | None = None,
    ) -> KeyValue:
        """The message that replaces one that does not fit.

        ``rewrite(location)`` makes it anew with the handle key only, compressed; ``location``
        is that of the claim check, if there is one.  ``stored`` goes there, if not ``message``.

        :raises EncodeError: if nothing may take its place, or that is too large, too.
        """
        size = len(message[0] or b"") + len(message[1]) + RECORD_OVERHEAD + framing
        if self.handle == "none":
            raise EncodeError(
                f"the message has {size} bytes, more than {self.max_message_bytes}; raise "
                "maxMessageBytes, or set largeMessageHandleOption"
            )
        location = None
        if self.handle == "claim-check":
            assert self.claim_checks is not None
            location = self.claim_checks.write(*(stored or message))
        key, value = rewrite(location)
        if not self.fits(key, value, framing):
            raise EncodeError(
                f"the message has {size} bytes, and even with its handle key only it has more "
                f"than {self.max_message_bytes}; raise maxMessageBytes"
            )
        return key, value

    def message(self, value: bytes) -> Message:
        """The message of a value that cannot be reduced, such as DDL.

        :raises EncodeError: if it does not fit.
        """
        value = self.compressed(value)
        self.check(None, value)
        return Message(None, value)

    def check(self, key: bytes | None, value: bytes) -> None:
        """Check a message that cannot be reduced, such as DDL.

        :raises EncodeError: if it does not fit.
        """
        if not self.fits(key, value):
            size = len(key or b"") + len(value) + RECORD_OVERHEAD
            raise EncodeError(
                f"the message has {size} bytes, more than {self.max_message_bytes}; "
                "raise maxMessageBytes"
            )
