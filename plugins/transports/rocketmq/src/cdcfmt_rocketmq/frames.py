"""Frames of the remoting protocol: a length, a header in JSON, a body.

Source: ``RemotingCommand`` of RocketMQ's own client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

import attrs

from cdcfmt_rocketmq.settings import ConnectionSettings

LARGEST_FRAME: Final = 160 << 20
"""Maximum bytes of an answer: a broker sends at most 128 MiB of messages at a time."""

_LENGTHS: Final = struct.Struct(">II")
_LENGTH: Final = struct.Struct(">I")
_VERSION: Final = 453
"""Version that clients of RocketMQ 5 send; brokers choose some defaults by it."""


class NoAnswerError(Exception):
    """A server cannot be reached, or gives no usable answer; a retry may succeed."""


class FrameError(NoAnswerError):
    """The bytes are not a frame."""


@attrs.frozen
class Answer:
    """The answer to a request: ``code`` 0 is success, ``remark`` describes an error."""

    code: int
    remark: str
    fields: Mapping[str, str]
    body: bytes

    def number(self, name: str) -> int:
        """:raises FrameError: for a field that is missing, or not a number."""
        try:
            return int(self.fields[name])
        except (KeyError, ValueError):
            raise FrameError(f"the answer has no number {name}") from None


def encode_request(
    code: int, opaque: int, fields: Mapping[str, str], body: bytes, settings: ConnectionSettings
) -> bytes:
    """A request, signed if there is a user."""
    header = {
        "code": code,
        "flag": 0,
        # Brokers work around bugs of the clients of some other languages.
        "language": "OTHER",
        "opaque": opaque,
        "version": _VERSION,
        "extFields": _signed(fields, body, settings),
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    return _LENGTHS.pack(4 + len(text) + len(body), len(text)) + text + body


def _signed(
    fields: Mapping[str, str], body: bytes, settings: ConnectionSettings
) -> Mapping[str, str]:
    """Add the user's name, and an HMAC of all fields (ordered by name) and the body.

    Source: ``AclClientRPCHook`` and ``AclUtils.combineRequestContent`` of RocketMQ's client.
    """
    if not settings.access_key:
        return fields
    all_fields = {**fields, "AccessKey": settings.access_key}
    if settings.security_token:
        all_fields["SecurityToken"] = settings.security_token
    signed = "".join(all_fields[name] for name in sorted(all_fields)).encode() + body
    digest = hmac.new(settings.secret_key.encode(), signed, hashlib.sha1).digest()
    return {**all_fields, "Signature": base64.b64encode(digest).decode()}


def frame_length(head: bytes) -> int:
    """Number of bytes that follow the first four of a frame.

    :raises FrameError: if it exceeds :data:`LARGEST_FRAME`, or is too small for a header.
    """
    length: int = _LENGTH.unpack(head)[0]
    if not 4 <= length <= LARGEST_FRAME:
        raise FrameError(f"a frame of {length} bytes: not a port of RocketMQ's remoting protocol")
    return length


def decode_answer(frame: bytes) -> tuple[int, Answer] | None:
    """The number of the request and its answer; None for a request by the server.

    :raises FrameError: for bytes that are neither.
    """
    # The highest byte is the form of the header; 0 is JSON, the form of our requests.
    marked: int = _LENGTH.unpack(frame[:4])[0]
    form, length = marked >> 24, marked & 0xFFFFFF
    if form != 0 or length > len(frame) - 4:
        raise FrameError(f"a header of {length} bytes and form {form} in a frame of {len(frame)}")
    try:
        header: Any = json.loads(frame[4 : 4 + length])
        code, opaque, flag = (int(header[name]) for name in ("code", "opaque", "flag"))
        fields = {str(name): str(value) for name, value in (header.get("extFields") or {}).items()}
        remark = str(header.get("remark") or "")
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise FrameError(f"a header that cannot be read ({type(error).__name__})") from None
    if not flag & 1:
        return None
    return opaque, Answer(code, remark, fields, frame[4 + length :])
