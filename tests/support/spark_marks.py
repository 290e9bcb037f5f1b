"""Tests that a version of Spark cannot run."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

import pytest

AVAILABLE_NOW_IS_ONE_BATCH: Final = version("pyspark").startswith("4.1.")
"""Whether a run with AvailableNow over a source in Python reads all in one batch, and after a crash
only repeats the batch that was left (docs/streaming.md)."""

several_batches = pytest.mark.skipif(
    AVAILABLE_NOW_IS_ONE_BATCH, reason="Spark 4.1 reads all in one batch"
)
