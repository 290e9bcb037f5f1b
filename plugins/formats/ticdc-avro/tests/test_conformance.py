"""The conformance kit on TiCDC's messages; test_golden.py has their truth."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

from support.framed_data import framed_messages, golden_schemas
from support.schema_registry import offline_registry, plain_responses, with_registry

from cdcfmt_core.events import Message
from cdcfmt_testing import Case, CodecTests
from cdcfmt_ticdc_avro.message import is_delete

VARIANTS = ("include-before-value", "watermark", "checksum")


class TestTicdcAvro(CodecTests):
    codec = "ticdc-avro"
    known_failures: ClassVar = {
        "test_tombstones": "a delete of a table without primary key has neither key nor value",
    }

    # Avro's names do not hold any name of a column; test_encode.py writes TiCDC's rows again.
    round_trips = ()

    @classmethod
    def registry_options(cls) -> Mapping[str, Any]:
        return with_registry(cls.codec, {}, writes=True)

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        servers = ExitStack()
        atexit.register(servers.close)
        for name in VARIANTS:
            folder = f"ticdc_avro/avro/{name}"
            schemas = golden_schemas(folder).by_id.values()
            texts = {each.id: each.text for each in schemas if isinstance(each.id, int)}
            registry = servers.enter_context(offline_registry(responses=plain_responses(texts)))
            yield Case(
                name,
                tuple(filter(_has_row_or_key, framed_messages(folder)))[:40],
                options={"schema.registry.url": registry.url, "sourceTimeZone": "Asia/Shanghai"},
                writing=None,
            )


def _has_row_or_key(message: Message) -> bool:
    """Not a delete of a table without a primary key, which is an error."""
    value = message.value
    return message.key is not None or (value is not None and not is_delete(value))
