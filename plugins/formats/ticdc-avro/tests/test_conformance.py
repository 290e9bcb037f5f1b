"""The conformance kit on TiCDC's DDL and watermarks; test_golden.py has the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from support.framed_data import framed_messages

from cdcfmt_testing import Case, CodecTests


class TestTicdcAvro(CodecTests):
    codec = "ticdc-avro"
    known_failures: ClassVar = {
        "test_every_kind_of_event": "rows are in test_golden.py: they need a registry",
        "test_tombstones": "a delete of a table without primary key has neither key nor value",
    }

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        messages = framed_messages("ticdc_avro/avro/watermark")
        control = [m for m in messages if m.value is not None and m.value[:1] in b"\x01\x02"]
        yield Case("watermark", tuple(control), writing=None)
