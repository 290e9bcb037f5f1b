"""Untrusted text in errors, logs and on terminals: bounded, with control characters escaped.

Control characters (C0, DEL, C1), line and paragraph separators, characters that change the
direction of text, and lone surrogates (no UTF-8 holds them) are escaped as in Python.
"""

from __future__ import annotations

import difflib
import functools
import json
import logging
import re
from collections.abc import Iterable
from typing import Any

OBEYED = "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ONE_LINE = re.compile(f"[\x00-\x1f{OBEYED}\u2028\u2029\ud800-\udfff]")
_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{OBEYED}\u2028\u2029\ud800-\udfff]")
_MAX_QUOTED = 1000
_LONGEST_NAME = 200


def one_line(text: str, limit: int = 0) -> str:
    """``text`` on one line, cut to ``limit`` characters if given."""
    if not limit or len(text) <= limit:
        shown = _ONE_LINE.sub(_escaped, text)
        if not limit or len(shown) <= limit:
            return shown
    end = f"… ({len(text)} long)"
    shown = _ONE_LINE.sub(_escaped, text[:limit])
    return shown[: max(limit - len(end), 0)] + end


def qualified(*names: str | None) -> str:
    """The non-empty names joined by dots, for texts and logs; long ones are cut."""
    return ".".join(one_line(name, _LONGEST_NAME) for name in names if name)


def open_logger(name: str) -> logging.Logger:
    """The logger of this name; it shortens quoted texts and puts them on one line."""
    logger = logging.getLogger(name)
    logger.addFilter(_quote_harmlessly)
    return logger


def _quote_harmlessly(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(
            value
            if isinstance(value, int | float)
            else one_line(without_secrets(str(value)), _MAX_QUOTED)
            for value in record.args
        )
    return True


_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#'\":@]*:)[^\s/?#'\"]*@")
_QUERY = re.compile(r"\?[A-Za-z][\w.-]*=[^\s'\"]*")


def without_secrets(text: str) -> str:
    """``text`` without the passwords and query strings of its URLs, even of mistyped ones."""
    return _QUERY.sub("?…", _PASSWORD.sub(r"\1…@", text) if "://" in text else text)


def harmless(text: str) -> str:
    """``text`` with control characters escaped, except tabs and line ends."""
    return _LINES.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1]


def parse_json(text: str | bytes) -> Any:
    """A JSON document that an option or a file of state should have.

    :raises ValueError: also for one that is nested too deep.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error text, ``; did you mean …?``; empty if no known name is similar.

    Case is ignored, so that a name that differs only in case comes first.
    """
    names: dict[str, str] = {}
    for each in known:
        names.setdefault(each.lower(), each)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return f"; did you mean {names[near[0]]}?" if near else ""


logger = open_logger("cdcfmt_core")


@functools.lru_cache(maxsize=10_000)
def warn_zoneless(
    database: str,
    table: str,
    consequence: str = "read as UTC; set sourceTimeZone to the source's zone",
) -> None:
    """Log the warning once per table; ``consequence``: the effect, and what to do."""
    logger.warning(
        "%s has TIMESTAMP columns, and this format does not send their time zone: they are %s",
        qualified(database, table),
        consequence,
    )


_warned: set[str] = set()


def warn_broken(what: str, text: str) -> None:
    """Log a text about ``what`` of a plugin, only the first one in this process."""
    if what not in _warned:
        _warned.add(what)
        # Each text stands for itself, so it is the format; the command line prints one of each.
        logger.warning(one_line(f"{what} {text}", _MAX_QUOTED))
