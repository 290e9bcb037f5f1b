"""Panics of the kernel fail these tests; outside of tests the reference decodes the message."""

import pytest

from pyspark_cdcfmt.kernel import learning


@pytest.fixture(autouse=True)
def _panics_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise AssertionError("the kernel panicked; stderr has the place")

    monkeypatch.setattr(learning, "report_panic", fail)
