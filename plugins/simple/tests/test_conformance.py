"""The conformance kit on TiCDC's messages, whose truth tests/test_golden_simple.py has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from golden_data import load_variant, reading_options

from cdcfmt_core.testing import Case, CodecTests

VARIANTS = [
    ("simple-json", "default"),
    ("simple-json", "handle-key-only"),
    ("simple-json", "lz4"),
    ("simple-json", "claim-check"),
    ("simple-avro", "default"),
    ("simple-avro", "checksum"),
]


class TestSimple(CodecTests):
    codec = "simple"
    known_failures: ClassVar = {
        "test_errors_name_the_field": "a row whose schema was not seen names that schema, not a "
        "field",
    }

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        for protocol, name in VARIANTS:
            variant = load_variant(protocol, name)
            options = {k: v for k, v in reading_options(variant).items() if k != "protocol"}
            messages = tuple(golden.message for golden in variant.messages[:80])
            yield Case(f"{protocol}-{name}", messages, options=options)
