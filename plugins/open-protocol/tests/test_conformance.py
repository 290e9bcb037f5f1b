"""The conformance kit on TiCDC's messages, whose truth tests/test_golden_open_protocol.py has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from golden_data import load_variant, reading_options
from open_messages import put_together, take_apart

from cdcfmt_core.testing import Case, CodecTests

VARIANTS = ["default", "batched", "handle-key-only", "no-old-value", "lz4", "claim-check"]


class TestOpenProtocol(CodecTests):
    codec = "open-protocol"

    cases = Path(__file__).parent / "cases"

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        yield from super().load_cases()
        for name in VARIANTS:
            variant = load_variant("open", name)
            options = {k: v for k, v in reading_options(variant).items() if k != "protocol"}
            messages = tuple(golden.message for golden in variant.messages[:300])
            yield Case(name, messages, options=options)

    take_apart = staticmethod(take_apart)
    put_together = staticmethod(put_together)
