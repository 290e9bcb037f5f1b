"""The escapes of Go's JSON writers."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_toolkit.json_output import escape_for_go, valid_name, valid_text
from cdcfmt_toolkit.large_message_output import LargeMessageOutput


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        (rb'"<a href=\"&\">"', rb'"\u003ca href=\"\u0026\"\u003e"'),
        ('"\u2028\u2029\u2027"'.encode(), b'"\\u2028\\u2029\xe2\x80\xa7"'),
        (rb'"\b\f\n\t\\b\\\b"', rb'"\u0008\u000c\n\t\\b\\\u0008"'),
        (rb'{"a":1}', rb'{"a":1}'),
    ],
)
def test_escapes(plain: bytes, escaped: bytes) -> None:
    assert escape_for_go(plain) == escaped
    assert json.loads(escape_for_go(plain)) == json.loads(plain)


def test_without_html() -> None:
    assert escape_for_go(rb'"<\b>"', html=False) == rb'"<\u0008>"'


def test_invalid_utf8_texts() -> None:
    context = EncoderContext(LargeMessageOutput(), counts=Counter())
    assert valid_text("x\udcff\udc80", context) == "x\ufffd\ufffd"
    assert sum(context.counts.values()) == 1
    context.invalid_text = "fail"
    with pytest.raises(EncodeError, match="column a: the text is not UTF-8"):
        valid_text("\udcff", context, column="a")
    with pytest.raises(EncodeError, match="a name is not UTF-8"):
        valid_name("\udcff")
