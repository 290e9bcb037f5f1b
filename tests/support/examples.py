"""How many examples a property test tries; the profile decides (conftest.py)."""

from __future__ import annotations

from hypothesis import settings


def examples(of_hundred: int) -> int:
    """For ``max_examples``: so many for each hundred that the profile has."""
    return max(2, of_hundred * settings.default.max_examples // 100)
