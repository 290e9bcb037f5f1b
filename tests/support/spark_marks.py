"""Tests that a version of Spark cannot run."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

import pytest

ON_SPARK_4_1: Final = version("pyspark").startswith("4.1.")
"""There, a run with AvailableNow over a source in Python reads all in one batch, after a crash it
only repeats the batch that was left, and progress has offsets as the text of a dict
(docs/streaming.md)."""

several_batches = pytest.mark.skipif(ON_SPARK_4_1, reason="Spark 4.1 reads all in one batch")
