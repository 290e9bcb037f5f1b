"""Avro's primitives, as fastavro writes them."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdcfmt_toolkit.wire_avro import write_bytes, write_long, write_text

LONGS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 63).flatmap(lambda bits: st.integers(2**bits - 2, 2**bits)).map(lambda n: n - 1),
    # A commit_ts and its neighbours.
    st.integers(0, 2**30).map(lambda n: 470604474496319489 + n),
)


def by_fastavro(schema: str, datum: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, {"type": schema}, datum)
    return stream.getvalue()


@given(LONGS)
@example(2**63 - 1)
@example(-(2**63))
def test_longs(value: int) -> None:
    assert write_long(value) == by_fastavro("long", value)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 100_000])
def test_lengths(size: int) -> None:
    assert write_bytes(b"\xff" * size) == by_fastavro("bytes", b"\xff" * size)
    assert write_text("é" * size) == by_fastavro("string", "é" * size)


def test_invalid_utf8_keeps_its_bytes() -> None:
    assert write_text("a\udcff") == by_fastavro("bytes", b"a\xff")
