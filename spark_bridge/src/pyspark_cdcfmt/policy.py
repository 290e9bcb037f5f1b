"""What becomes of values that a type cannot hold, as the options say."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, tzinfo

import attrs

from cdcfmt_core.types import InvalidValue


class BadValue(ValueError):
    """A value that the declared type cannot hold."""


@attrs.define
class ValuePolicy:
    """What becomes of values that types cannot hold (DESIGN: wrong input), counted by column."""

    invalid_values: str = "null"
    invalid_text: str = "replace"
    time_zone: tzinfo = UTC
    counts: Counter[str] = attrs.field(factory=Counter)

    def text(self, value: str, column: str) -> str:
        """``value`` with undecodable bytes treated as ``invalidText`` says."""
        if value.isascii():
            return value
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            pass
        else:
            return value
        if self.invalid_text == "fail":
            raise BadValue("text that its charset cannot decode (invalidText=fail)")
        self.counts[f"{column}: undecodable text"] += 1
        try:
            raw = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raw = value.encode("utf-8", "surrogatepass")
        how = "replace" if self.invalid_text == "replace" else "backslashreplace"
        return raw.decode("utf-8", how)

    def invalid(self, value: InvalidValue, column: str, *, as_text: bool) -> str | None:
        """What stands for a value that the type cannot hold."""
        if self.invalid_values == "fail":
            raise BadValue(f"{value.text!r} is no possible value (invalidValues=fail)")
        if self.invalid_values == "text":
            if as_text:
                return value.text
            raise BadValue(
                f"{value.text!r} is no possible value, and invalidValues=text needs a string column"
            )
        self.counts[f"{column}: invalid value as NULL"] += 1
        return None
