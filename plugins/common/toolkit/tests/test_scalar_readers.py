"""Decimals as unscaled integers, of any size that a database has."""

from __future__ import annotations

import time
from decimal import Context
from decimal import Decimal as D

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.types import Decimal
from cdcfmt_toolkit.scalar_readers import read_unscaled, scaled

LONGEST = "9" * 147_455


@pytest.mark.parametrize(
    ("unscaled", "scale", "text"),
    [
        (-150, 2, "-1.50"),
        (1, 1_000, "0." + "0" * 999 + "1"),
        (10**200 + 1, 0, "1" + "0" * 199 + "1"),
        (7, 16_383, "0." + "0" * 16_382 + "7"),
        # numeric(5,-2) and numeric(1000,-1000) have the scales 2046 and 1048.
        (12_300 * 10**2046, 2046, "12300"),
        (9 * 10**2047, 1048, "9" + "0" * 999),
        # Zeros at the end are no part of numbers without a scale.
        (12, -130, "12" + "0" * 130),
        (12, -2_000, "1.2E+2001"),
    ],
)
def test_scale(unscaled: int, scale: int, text: str) -> None:
    number = scaled(unscaled, scale)
    assert isinstance(number, D)
    assert str(number) == str(D(text))
    assert f"{number:f}" == f"{D(text):f}"


@given(st.integers(-(10**5_000), 10**5_000), st.integers(0, 1_000))
def test_all_digits_are_kept(unscaled: int, scale: int) -> None:
    number = scaled(unscaled, scale)
    assert isinstance(number, D)
    assert number.as_tuple().exponent == -scale
    assert int(number.scaleb(scale, Context(prec=6_000))) == unscaled


@pytest.mark.parametrize("scale", [16_384, 10**9, -131_072, -(10**9)])
def test_a_scale_cannot_ask_for_memory(scale: int) -> None:
    with pytest.raises(ValueError, match=f"a decimal with scale {scale}"):
        scaled(1, scale)


def test_the_longest_number_is_read_quickly() -> None:
    number = int(D(LONGEST))
    start = time.process_time()
    assert str(scaled(number, 16_383)) == f"{LONGEST[:131_072]}.{LONGEST[131_072:]}"
    assert time.process_time() - start < 1
    with pytest.raises(ValueError, match="a decimal of more than 147455 digits"):
        scaled(number + 1, 0)
    with pytest.raises(ValueError, match="a decimal of 61233 bytes"):
        read_unscaled(b"\x01" * 61_233)


def test_a_type_of_mysql_keeps_its_limit() -> None:
    assert scaled(10**65 - 1, 30, Decimal(65, 30)) == D(10**65 - 1).scaleb(-30, Context(prec=65))
    with pytest.raises(ValueError, match="a decimal of more than 65 digits"):
        scaled(10**65, 30, Decimal(65, 30))
    assert scaled(10**65, 30, Decimal(66, 30)) == D(10**35)
