"""The conformance kit on records of the DTS SDK, whose truth tests/test_golden_dts.py has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from golden_data import native_messages

from cdcfmt_core.testing import Case, CodecTests


class TestDtsAvro(CodecTests):
    codec = "dts-avro"
    known_failures: ClassVar = {
        "test_bad_messages_harm_no_others": "a column of NULLs has the type of the values that "
        "it had before, also of those in a corrupt record",
    }

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        yield Case("sdk", tuple(native_messages("dts/dts")))
