"""Python codecs of the charset names of MySQL and other sources.

Source: MySQL 8.4 Reference Manual, 12.10; the DTS SDK's ``JDKEncodingMapper``.  Only names of
this table are looked up, since names come from messages.
"""

from __future__ import annotations

import codecs
from typing import Final

BINARY: Final = frozenset({"", "binary"})
"""Charset names of bytes that are not text."""

CODECS: Final = {
    "armscii8": None,
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "dec8": None,
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "geostd8": None,
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "keybcs2": None,
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    # MySQL's latin1 is the Windows code page, not ISO 8859-1.
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "swe7": None,
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "ujis": "euc_jp",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8": "utf_8",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
    # Names of Java, PostgreSQL and Oracle.
    "utf-8": "utf_8",
    "us-ascii": "ascii",
    "iso-8859-1": "latin_1",
    "windows-1252": "cp1252",
    "sql_ascii": "utf_8",
    "al32utf8": "utf_8",
    "we8iso8859p1": "latin_1",
    "we8mswin1252": "cp1252",
    "zhs16gbk": "gbk",
}
"""Charset name → Python codec; None if Python has none: such text stays bytes."""


def codec_of(charset: str) -> str | None:
    """The codec of a charset; None if its text must stay bytes."""
    return CODECS.get(charset) or CODECS.get(charset.lower())


def errors_of(charset: str) -> str:
    """The error handler of ``bytes.decode`` for bytes that the charset's codec cannot decode."""
    return _C1_CONTROLS if charset.lower() == "latin1" else "surrogateescape"


_C1_CONTROLS: Final = "cdcfmt.c1_controls"


def _as_c1_controls(error: UnicodeError) -> tuple[str, int]:
    # Where the Windows code page has no character, MySQL's latin1 has C1 controls.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin_1"), error.end


codecs.register_error(_C1_CONTROLS, _as_c1_controls)
