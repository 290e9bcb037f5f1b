"""The conformance kit on TiCDC's messages; test_golden.py has their truth."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from open_messages import build_wire, parse_wire
from open_round_trips import DIFFERENCES, ROUND_TRIPS
from support.golden_encoding import golden_cases

from cdcfmt_testing import Case, CodecTests


class TestOpenProtocol(CodecTests):
    codec = "open-protocol"
    cases = Path(__file__).parent / "cases"
    round_trips = ROUND_TRIPS
    differences = DIFFERENCES

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        yield from super().load_cases()
        yield from golden_cases("open")

    parse_wire = staticmethod(parse_wire)
    build_wire = staticmethod(build_wire)
