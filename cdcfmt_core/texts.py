"""Foreign text in errors, logs and on terminals: bounded, and without what these obey.

Control characters (C0, DEL, C1), line and paragraph separators and those that turn the
direction of text are escaped as Python writes them.
"""

from __future__ import annotations

import re

_OBEYED = "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ONE_LINE = re.compile(f"[\x00-\x1f{_OBEYED}\u2028\u2029\ud800-\udfff]")
_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_OBEYED}\u2028\u2029\ud800-\udfff]")
_IN_JSON = re.compile(f"[{_OBEYED}]")


def one_line(text: str, limit: int = 0) -> str:
    """``text`` on one line, cut to ``limit`` characters if given."""
    if limit and len(text) > limit:
        text = f"{text[:limit]}… ({len(text)} long)"
    return _ONE_LINE.sub(_escaped, text)


def harmless(text: str) -> str:
    """``text`` with its tabs and line ends, and nothing else that a terminal obeys."""
    return _LINES.sub(_escaped, text)


def harmless_json(text: str) -> str:
    """The same for JSON without raw control characters, whose value stays what it is."""
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escaped(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1]
