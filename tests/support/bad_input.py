"""Shared parts of the formats' tests of bad input, beside the conformance kit."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import HealthCheck, settings

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_testing import outcome
from cdcfmt_testing.damage import JSON, changed, paths_of
from cdcfmt_testing.outcome import check_row

__all__ = ["JSON", "changed", "check_error", "check_row", "paths_of", "patient"]

# A guard against hangs, not a benchmark.
settings.register_profile("patient", deadline=timedelta(seconds=20))
patient = settings(
    settings.get_profile("patient"),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

PLACE = Message(None, None, topic="t", partition=3, offset=99)
"""The declared source of the messages of these tests."""


def check_error(error: DecodeError, protocol: str) -> None:
    """A well-formed error; under ``auto``, of any format or none."""
    outcome.check_error(error, PLACE, error.protocol if protocol == "auto" else protocol)
    outcome.check_pickles(error)
