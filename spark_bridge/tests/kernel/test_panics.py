"""A bug of the kernel is logged once, and fails the kernel's tests."""

from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_cdcfmt.kernel.learning import Learner, report_panic

pytestmark = pytest.mark.kernel


def test_a_panic_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    report_panic.cache_clear()
    report_panic()
    report_panic()
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "report" in record.message


def test_a_panic_fails_the_tests_of_the_kernel() -> None:
    from cdcfmt_kernel import Reason

    shape: Any = SimpleNamespace(schemas=SimpleNamespace(changes=0))
    layout: Any = SimpleNamespace(max_events=None, repeats_database=False)
    kernel: Any = SimpleNamespace()
    stop: Any = SimpleNamespace(reason=Reason.PANIC, text="internal error")
    learner = Learner(kernel, [layout], shape, decoder=kernel)
    with pytest.raises(AssertionError, match="panicked"):
        learner.note_refusal(kernel, stop)
