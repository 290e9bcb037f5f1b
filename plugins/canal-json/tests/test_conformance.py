"""The conformance kit on messages of TiCDC and Canal, whose truth tests/test_*canal* have."""

from __future__ import annotations

from collections.abc import Iterable

from golden_data import load_variant, native_messages, reading_options

from cdcfmt_core.testing import Case, CodecTests

VARIANTS = [
    "default",
    "tidb-extension",
    "content-compatible",
    "handle-key-only",
    "only-output-updated-columns",
    "lz4",
    "claim-check",
]


class TestCanalJson(CodecTests):
    codec = "canal-json"

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        for name in VARIANTS:
            variant = load_variant("canal-json", name)
            options = {k: v for k, v in reading_options(variant).items() if k != "protocol"}
            messages = tuple(golden.message for golden in variant.messages[:300])
            yield Case(name, messages, options=options)
        yield Case("canal", tuple(native_messages("canal/canal_flat"))[:500])
