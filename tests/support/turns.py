"""Combinations of parameters, of which `make test` runs a part and `make thorough` all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def in_turn(*parameters: Iterable[Any], of: int, begin: int = 0) -> list[Any]:
    """All combinations, for ``pytest.mark.parametrize``; those out of turn are marked as thorough.

    One of ``of`` is in turn: the diagonals, so that each value has its turn, with other values of
    each parameter.  Values that are tuples stand for several arguments.

    :param begin: which of them; two tests of the same values take others.
    """
    found = []
    for combination in product(*map(enumerate, parameters)):
        arguments: list[Any] = []
        for _, value in combination:
            arguments += value if isinstance(value, tuple) else [value]
        turn = (sum(place for place, _ in combination) + begin) % of
        found.append(pytest.param(*arguments, marks=[pytest.mark.thorough] if turn else []))
    return found
