"""Compressed, reduced and claim-check messages, as TiCDC can be configured to send.

Source: protocols of TiCDC, ``large-message-handle-compression`` and ``claim-check``.  Messages do
not name their compression: ``lz4`` is the LZ4 *frame* format, ``snappy`` the raw *block* format.
A claim check is a file ``<storage>/<uuid>.json`` that holds ``{"key": base64, "value": base64}``,
or only the (still compressed) value.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from cdcfmt_core.codec import ClaimChecks, DecoderContext
from cdcfmt_core.errors import (
    CdcfmtError,
    DecodeError,
    MissingDependencyError,
    MissingSchemaError,
    show,
)
from cdcfmt_core.events import Corrupt
from cdcfmt_core.options import Option
from cdcfmt_core.texts import without_secrets
from cdcfmt_mysql import InexactNumber
from cdcfmt_toolkit.filesystem import is_local, open_filesystem
from cdcfmt_toolkit.json_size import check_values

T = TypeVar("T")

COMPRESSION_OPTION = Option(
    name="largeMessageHandleCompression",
    type="choice",
    choices=("none", "lz4", "snappy"),
    default="none",
    help="Compression of each message, as set in TiCDC's `large-message-handle-compression`; "
    "messages do not name it.",
)

HANDLE_KEY_DELETES_OPTION = Option(
    name="deleteOnlyOutputHandleKeyColumns",
    type="bool",
    default=False,
    help="TiCDC's `delete-only-output-handle-key-columns` was on: deletes hold only the handle "
    "key; messages do not show this.",
)

HANDLE_KEY_DELETES_ENCODE_OPTION = Option(
    name="deleteOnlyOutputHandleKeyColumns",
    type="bool",
    default=False,
    help="Write only the handle key of deleted rows.",
)

_LZ4_MAGIC = b'\x04"M\x18'
_HINT = "set largeMessageHandleCompression to what the producer has"

_NO_FILE_NAME = re.compile("[\0:\ud800-\udfff]")
# Some stores decode these, and the name would refer to another file.
_UNSAFE_IN_URLS = re.compile(r"[%?#]")
_LZ4_STEP = 1 << 16
_LZ4_USUAL_RATIO = 10
_TEXT = re.compile(rb"[\t\n\r -~]*")
_BEGINNING = 64
# A copy element of snappy takes at least 3 bytes and yields at most 64.
_SNAPPY_BEST_RATIO = 64 / 3


def open_decompressor(compression: str, limit: int) -> Callable[[bytes], bytes] | None:
    """A function that decompresses one value to at most ``limit`` bytes; None for ``none``."""
    if compression == "none":
        return None
    module = import_compression(compression)

    def decompress_lz4(data: bytes) -> bytes:
        try:
            decompressor = module.LZ4FrameDecompressor()
            # It allocates max_length at once, so decompress in steps.
            step = min(limit, _LZ4_STEP + _LZ4_USUAL_RATIO * len(data))
            result: bytes = decompressor.decompress(data, max_length=step)
            while not decompressor.eof and not decompressor.needs_input and len(result) < limit:
                step = min(limit - len(result), len(result))
                result += decompressor.decompress(b"", max_length=step)
        except (RuntimeError, EOFError) as error:
            raise DecodeError(f"not an LZ4 frame ({error}); {_HINT}", sample=data) from error
        if not decompressor.eof:
            if len(result) >= limit:
                raise _too_large(limit)
            raise DecodeError("the LZ4 frame is cut off", sample=data)
        if decompressor.unused_data:
            raise DecodeError("there are bytes after the LZ4 frame", sample=data)
        return result

    def decompress_snappy(data: bytes) -> bytes:
        # The block starts with its claimed length: trust it only up to the maximum that its bytes
        # can decompress to.
        claimed = _varint(data)
        if claimed > limit:
            raise _too_large(limit)
        if claimed > len(data) * _SNAPPY_BEST_RATIO:
            raise DecodeError(
                f"not a snappy block: {len(data)} bytes cannot hold {claimed}; {_HINT}",
                sample=data,
            )
        try:
            return bytes(module.snappy.decompress_raw(data))
        except module.DecompressionError as error:
            raise DecodeError(f"not a snappy block ({error}); {_HINT}", sample=data) from error

    return decompress_lz4 if compression == "lz4" else decompress_snappy


def _too_large(limit: int) -> DecodeError:
    return DecodeError(
        f"the message decompresses to more than {limit} bytes; raise maxMessageBytes if it is real"
    )


def compression_hint(data: bytes) -> str | None:
    """A hint for bytes that look compressed, else None."""
    if data[:4] == _LZ4_MAGIC:
        return "is an LZ4 frame; set largeMessageHandleCompression=lz4"
    if _may_be_snappy(data):
        return "looks like a snappy block; set largeMessageHandleCompression=snappy"
    return None


def _may_be_snappy(data: bytes) -> bool:
    """Whether the claimed length is possible, and the first element is a literal."""
    try:
        size = _varint(data)
    except DecodeError:
        return False
    first = max((size.bit_length() + 6) // 7, 1)
    # The format's maximum overhead.
    fits = size <= len(data) * _SNAPPY_BEST_RATIO and len(data) <= 32 + size + size // 6
    # Printable characters pass both tests, and lines of text start with them.
    fits = fits and _TEXT.fullmatch(data[:_BEGINNING]) is None
    return fits and size > 0 and len(data) > first and data[first] & 3 == 0


def _varint(data: bytes) -> int:
    result = 0
    for shift, byte in enumerate(data[:5]):
        result |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return result
    raise DecodeError(f"not a snappy block: no length; {_HINT}", sample=data)


def import_compression(compression: str) -> Any:
    """The library for ``lz4`` (``lz4.frame``) or ``snappy`` (``cramjam``).

    :raises MissingDependencyError: naming the command that installs it.
    """
    import importlib

    name = "lz4.frame" if compression == "lz4" else "cramjam"
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{compression} needs {name.partition('.')[0]}: "
            "pip install 'cdcfmt-toolkit[compression]'"
        ) from error


@attrs.frozen
class ClaimCheckStore:
    """The folder where the producer stored the messages that were too large; it can be pickled.

    ``root``: a local path, or a URL that fsspec can open.  Of a message's location only the last
    path segment is used.  It reads only files directly in the folder, and rejects links to others.

    :raises MissingDependencyError: if a library is missing; the text names it.
    :raises SourceError: if the URL's scheme is unknown.
    """

    root: str = attrs.field(repr=lambda root: repr(without_secrets(root)))
    storage_options: Mapping[str, Any] | None = attrs.field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        # A bad URL fails here, not at the first claim check.
        open_filesystem(self.root, self.storage_options)

    def read(self, location: object, limit: int) -> tuple[bytes | None, bytes]:
        """Key (None if the file has only a value) and value, still compressed.

        :raises DecodeError: if the location is not a file name, or the file cannot be read.
        """
        if not isinstance(location, str):
            raise DecodeError("claim check location is not text", sample=location)
        name = location.replace("\\", "/").rpartition("/")[2]
        if name in ("", ".", "..") or _NO_FILE_NAME.search(name):
            raise DecodeError("claim check location is not a file name", sample=location)
        try:
            body = self.read_file(name, limit)
        except OSError as error:
            raise DecodeError(
                f"claim check {name} cannot be read under {self.root} ({error}); "
                "set claimCheckStorageUri to the folder that the producer wrote to"
            ) from error
        return _unwrap(body, limit)

    def read_file(self, name: str, limit: int) -> bytes:
        """The bytes of a file directly in the folder."""
        filesystem, root = open_filesystem(self.root, self.storage_options)
        if is_local(filesystem):
            path = self._local_path(root, name)
        elif _UNSAFE_IN_URLS.search(name):
            raise DecodeError("claim check location is not a file name", sample=name)
        else:
            path = f"{root.rstrip('/')}/{name}"
        with filesystem.open(path, "rb") as file:
            body: bytes = file.read(limit + 1)
        if len(body) > limit:
            raise DecodeError(
                f"claim check {name} under {self.root} is larger than {limit} bytes; "
                "raise maxMessageBytes if it is real"
            )
        return body

    def _local_path(self, root: str, name: str) -> str:
        folder = os.path.realpath(root)
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.dirname(path) != folder:
            raise DecodeError(
                f"claim check {name} is a link to a file outside of {self.root}; "
                "put the file itself there"
            )
        # Opening a pipe or the like could block forever.
        if os.path.exists(path) and not os.path.isfile(path):
            raise DecodeError(f"claim check {name} under {self.root} is not a file")
        return path


def resolve_claim_check(
    store: ClaimChecks | None, location: object, limit: int
) -> tuple[bytes | None, bytes]:
    """Key and value at ``location``; without a store, an error that names the option."""
    if store is None:
        raise DecodeError(
            f"the message is a claim check for {show(location)}; set claimCheckStorageUri "
            "to the folder that the producer wrote to"
        )
    return store.read(location, limit)


def claim_check_of(wire: Mapping[str, Any], *, is_claimed: bool) -> Any:
    """``claimCheckLocation``; None if it is null, empty or missing.

    :raises DecodeError: if the message itself was read from a claim check (``is_claimed``).
    """
    location = wire.get("claimCheckLocation")
    if location is None or location == "":
        return None
    if is_claimed:
        raise DecodeError("a claim check leads to another one", sample=location)
    return location


def read_claimed(context: DecoderContext, location: object, read: Callable[[bytes], T]) -> T:
    """The result of ``read`` for the value of the message in a claim check.

    Neither its errors nor those of single rows quote values of the file.

    :raises DecodeError: the error of ``read``.
    """
    _, value = resolve_claim_check(context.claim_checks, location, context.max_message_bytes)
    try:
        found = read(value)
    except (MissingSchemaError, InexactNumber):
        raise
    except DecodeError as error:
        raise error_of_claim_check(error, location) from None
    except (CdcfmtError, ImportError):
        raise
    except Exception as error:
        if os.environ.get("CDCFMT_DEBUG") == "1":
            raise
        # A fault of the decoder: its text may quote the file, too.
        reason = f"the decoder failed: {type(error).__name__}"
        raise error_of_claim_check(DecodeError(reason), location) from None
    for event in found if isinstance(found, list) else [found]:
        if isinstance(event, Corrupt) and not isinstance(event.error, MissingSchemaError):
            event.error = error_of_claim_check(event.error, location)
    return found


_QUOTED = re.compile(r"""b?(['"])(?:\\.|(?!\1).)*\1|-?\d{3,}(?:\.\d+)?""", re.DOTALL)


def error_of_claim_check(error: DecodeError, location: object) -> DecodeError:
    """The error of a claim-check file, without its values, as the location may name any file."""
    error.sample = None
    return error.at(reason=f"claim check {show(location)}: {without_values(error.reason)}")


def without_values(reason: str) -> str:
    """The reason of an error without quoted texts and without numbers of three digits or more."""
    return _QUOTED.sub("…", reason)


def _unwrap(body: bytes, limit: int) -> tuple[bytes | None, bytes]:
    if body[:1] == b"{":
        check_values(body, limit)
        try:
            wrapped = json.loads(body)
        except (ValueError, RecursionError):
            return None, body
        if isinstance(wrapped, dict) and set(wrapped) == {"key", "value"}:
            key, value = wrapped["key"], wrapped["value"]
            try:
                if not isinstance(value, str):
                    raise ValueError("no value")
                return (
                    None if key is None else base64.b64decode(key, validate=True),
                    base64.b64decode(value, validate=True),
                )
            except (ValueError, TypeError, binascii.Error) as error:
                raise DecodeError(f"claim check file is not base64 ({error})") from error
    return None, body
