"""The conformance kit on TiCDC's messages, whose truth tests/test_golden_open_protocol.py has."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs
from golden_data import load_variant, reading_options
from open_messages import VERSION, frames

from cdcfmt_core.events import Message
from cdcfmt_core.testing import Case, CodecTests
from cdcfmt_open_protocol.frames import split_key, split_value

VARIANTS = ["default", "batched", "handle-key-only", "no-old-value", "lz4", "claim-check"]


class TestOpenProtocol(CodecTests):
    codec = "open-protocol"

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        for name in VARIANTS:
            variant = load_variant("open", name)
            options = {k: v for k, v in reading_options(variant).items() if k != "protocol"}
            messages = tuple(golden.message for golden in variant.messages[:300])
            yield Case(name, messages, options=options)

    @staticmethod
    def take_apart(message: Message) -> Any:
        parts = split_key(message.key or b"", 100), split_value(message.value or b"", 100)
        return [[json.loads(part) if part else None for part in side] for side in parts]

    @staticmethod
    def put_together(message: Message, wire: Any) -> Message:
        match wire:
            case [[_, *_], [*_]]:
                pass
            case _:
                raise ValueError("no frames, or an empty batch, which is a good message")
        parts = [[b"" if part is None else json.dumps(part) for part in side] for side in wire]
        return attrs.evolve(message, key=VERSION + frames(parts[0]), value=frames(parts[1]))
