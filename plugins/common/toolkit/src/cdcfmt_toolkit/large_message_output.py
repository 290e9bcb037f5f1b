"""Write large messages as TiCDC does: compressed, reduced to the key, or as claim checks.

The inverse is :mod:`cdcfmt_toolkit.large_messages`, which names the sources.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from cdcfmt_core.encoding_options import PRODUCER_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import EncodeError, OptionError
from cdcfmt_core.events import Message
from cdcfmt_toolkit.filesystem import is_local, open_filesystem
from cdcfmt_toolkit.large_messages import import_compression

RECORD_OVERHEAD: Final = 36
"""Bytes of a Kafka record in addition to key and value, as TiCDC counts them: five 32-bit
varints, one of 64 bits, and a byte (``MaxRecordOverhead``)."""

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


@attrs.frozen
class ClaimCheckWriter:
    """The folder for messages that are too large; it can be pickled.

    - ``root``: as of :class:`~cdcfmt_toolkit.large_messages.ClaimCheckStore`, which reads it;
      a missing local folder is created.
    - ``raw_value``: write only the value, without the key.
    """

    root: str
    storage_options: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    raw_value: bool = False

    def __attrs_post_init__(self) -> None:
        open_filesystem(self.root, self.storage_options)

    def write(self, key: bytes | None, value: bytes) -> str:
        """Write the message to a file; return its location, for the claim-check message.

        :raises EncodeError: if the file cannot be written.
        """
        name = f"{uuid.uuid4()}.json"
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

    def write_file(self, name: str, body: bytes) -> None:
        """Create a file directly in the folder; on failure it leaves no partial file."""
        filesystem, root = open_filesystem(self.root, self.storage_options)
        path = f"{root.rstrip('/')}/{name}"
        if not is_local(filesystem):
            # Object stores show a file only when it is complete.
            with filesystem.open(path, "wb") as file:
                file.write(body)
            return
        os.makedirs(root, exist_ok=True)
        aside = f"{root.rstrip('/')}/.{name}.part"
        try:
            with open(aside, "xb") as file:
                file.write(body)
            os.replace(aside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise


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
        """Reject compression and large-message handling, for a format ``name`` without them.

        :raises OptionError: if either option is set.
        """
        if self.compress is not None or self.handle != "none":
            raise OptionError(
                f"options largeMessageHandleOption and largeMessageHandleCompression: {name} "
                "supports neither; leave them at none"
            )

    def fits(self, key: bytes | None, value: bytes, framing: int = 0) -> bool:
        """Whether a message of this key and value may be sent; ``framing``: its other bytes."""
        return _size(key, value) + framing <= self.max_message_bytes

    def replace(
        self,
        message: KeyValue,
        rewrite: Callable[[str | None], KeyValue],
        *,
        framing: int = 0,
        stored: KeyValue | None = None,
    ) -> KeyValue:
        """The replacement for a message that does not fit.

        :param rewrite: writes the message again with only the handle key, compressed, and with the
            location of the claim check (or None).
        :param stored: the message to store as a claim check. Defaults to ``message``.
        :raises EncodeError: if no replacement is allowed, or if it is also too large.
        """
        size = _size(*message) + framing
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
                f"the message has {size} bytes, and even with only its handle key it has more "
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
            raise EncodeError(
                f"the message has {_size(key, value)} bytes, more than {self.max_message_bytes}; "
                "raise maxMessageBytes"
            )


def open_output(
    max_message_bytes: int = PRODUCER_MAX_MESSAGE_BYTES,
    handle: Literal["none", "claim-check", "handle-key-only"] = "none",
    compression: str = "none",
    claim_checks: ClaimCheckWriter | None = None,
) -> LargeMessageOutput:
    """The service ``large-messages``, from option values."""
    return LargeMessageOutput(max_message_bytes, handle, open_compressor(compression), claim_checks)


def _size(key: bytes | None, value: bytes) -> int:
    return len(key or b"") + len(value) + RECORD_OVERHEAD
