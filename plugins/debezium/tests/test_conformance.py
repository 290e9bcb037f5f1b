"""The conformance kit on messages of TiCDC and Debezium; tests/test_*debezium* have their truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from golden_data import load_variant, native_messages, reading_options

from cdcfmt_core.testing import Case, CodecTests

VARIANTS = ["tidb-extension", "disable-schema", "no-old-value", "lz4"]

NATIVE: dict[str, dict[str, str]] = {
    "noschema_default": {},
    "noschema_strings": {
        "decimalHandlingMode": "string",
        "timePrecisionMode": "connect",
        "binaryHandlingMode": "base64",
    },
    "schema_default": {},
}


class TestDebezium(CodecTests):
    codec = "debezium"
    known_failures: ClassVar = {
        "test_every_kind_of_event": "no golden stream has heartbeats, nor messages of Postgres",
    }

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        for name in VARIANTS:
            variant = load_variant("debezium", name)
            options = {k: v for k, v in reading_options(variant).items() if k != "protocol"}
            messages = tuple(golden.message for golden in variant.messages[:200])
            yield Case(name, messages, options=options)
        for name, options in NATIVE.items():
            messages = tuple(native_messages(f"debezium/{name}"))[:200]
            yield Case(name, messages, options=options)
