"""Unquoting of Go's strconv.Quote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_toolkit.go_quote import unquote

NAMED = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def quote(data: bytes) -> str:
    """As Go's strconv.Quote without the quotes, by its documentation."""
    parts = []
    for character in data.decode("utf-8", "surrogateescape"):
        code = ord(character)
        if code in NAMED:
            parts.append("\\" + NAMED[code])
        elif 0xDC80 <= code <= 0xDCFF:
            parts.append(f"\\x{code - 0xDC00:02x}")
        elif character.isprintable():
            parts.append(character)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join(parts)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("plain", b"plain"),
        ("中文😀", "中文😀".encode()),
        ("\ufffd", b"\xef\xbf\xbd"),
        (r"\a\b\f\n\r\t\v\\\"", b'\a\b\f\n\r\t\v\\"'),
        (r"\x00\xff\xFF\x7f", b"\x00\xff\xff\x7f"),
        (r"\u00a0\u200b\U000e0001", "\u00a0\u200b\U000e0001".encode()),
        (r"\\x41\\u0041\\\x41", rb"\x41\u0041" + b"\\A"),
        (r"\u005c\U0000005cx41", rb"\\x41"),
        (r"\u0022'`$", b"\"'`$"),
        ("中" + r"\x00" * 3, "中".encode() + b"\0\0\0"),
    ],
)
def test_go_quoted_text_is_unquoted(text: str, data: bytes) -> None:
    assert unquote(text) == data


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\\", r"'\\\\' at byte 0"),
        ("abc\\", r"'\\\\' at byte 3"),
        (r"\q", r"'\\\\q' at byte 0"),
        (r"\'", "at byte 0"),
        (r"\0", "at byte 0"),
        (r"\101", "at byte 0"),
        (r"\x4", "at byte 0"),
        (r"\x4g", "at byte 0"),
        (r"\u123", "at byte 0"),
        (r"\U0010000", "at byte 0"),
        (r"\N{DIGIT ONE}", "at byte 0"),
        ("\\\n", "at byte 0"),
        ('say "hi"', "at byte 4"),
        ("tab\there", "at byte 3"),
        ("\x7f", "at byte 0"),
        ("\0", "at byte 0"),
        (r"\ud800", "is not a character"),
        (r"\udc80", "is not a character"),
        (r"\U00110000", "is not a character"),
        ("\udcff", "not escaped"),
        (r"\u0041\q", "at byte 6"),
    ],
)
def test_text_never_written_by_go_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"not Go-quoted.*{reason}"):
        unquote(text)


@given(st.binary() | st.text().map(str.encode))
def test_quoting_round_trips(data: bytes) -> None:
    assert unquote(quote(data)) == data


@given(st.text(alphabet='\\abfnrtvxuU"0189afAFgG中\n', max_size=30))
def test_accepted_text_round_trips(text: str) -> None:
    try:
        data = unquote(text)
    except ValueError:
        return
    # Accepted text equals Go's quoting of its value.
    assert unquote(quote(data)) == data
    assert len(data) <= len(text.encode())


@pytest.mark.parametrize("text", ["x" * 1_000_000 + "\\", "\\" * 999_999, r"\x0" * 300_000])
def test_long_invalid_text_is_rejected_quickly(text: str) -> None:
    with pytest.raises(ValueError, match="not Go-quoted"):
        unquote(text)
