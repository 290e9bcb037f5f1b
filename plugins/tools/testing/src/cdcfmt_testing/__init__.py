"""The conformance kit: tests for every format, as a class to inherit from.

::

    class TestAcme(CodecTests):
        codec = "acme-json"
        cases = Path(__file__).parent / "cases"
        known_failures = {"test_tombstones": "acme's deletes have no value"}

docs/conformance-kit.md describes the tests.
"""

from __future__ import annotations

from cdcfmt_testing.carries import ALL_TYPES, Carries, RoundTrip, without
from cdcfmt_testing.cases import Case, load_case, load_cases
from cdcfmt_testing.event_json import events_from_json, events_to_json
from cdcfmt_testing.subject import Subject
from cdcfmt_testing.suite import CodecTests

__all__ = [
    "ALL_TYPES",
    "Carries",
    "Case",
    "CodecTests",
    "RoundTrip",
    "Subject",
    "events_from_json",
    "events_to_json",
    "load_case",
    "load_cases",
    "without",
]
