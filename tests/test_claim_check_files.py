"""What a message points to in the claim-check folder need not be a message, nor have a name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from golden_data import load_variant

from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Event, Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.registry import default_registry
from cdcfmt_core.toolkit.large_messages import ClaimCheckStore

SECRET = "hunter2"
FILES = [
    f"password={SECRET}\n",
    json.dumps({"password": SECRET}),
    json.dumps({"type": SECRET, "op": SECRET, "u": SECRET}),
    json.dumps([SECRET]),
    f'{{"password": "{SECRET}',
]
_FILE = re.compile(rb"[0-9a-f-]{36}\.json")
PROTOCOLS = {"canal-json": "canal-json", "simple-json": "simple", "open": "open-protocol"}


def decoded(protocol: str, message: Message, folder: Path) -> list[Event]:
    codec = default_registry().get_codec(protocol)
    options: dict[str, Any] = validate({"protocol": protocol}, DECODING_OPTIONS, owner="test")
    own = validate({}, codec.options, owner="test")
    store = ClaimCheckStore(str(folder))
    return MessageDecoder(options, own, EventFilter(), claim_checks=store).decode(message)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("text", FILES)
def test_no_byte_of_the_file_is_shown(name: str, text: str, tmp_path: Path) -> None:
    found = 0
    for golden in load_variant(name, "claim-check").messages:
        part = golden.message.key if name == "open" else golden.message.value
        files = _FILE.findall(part or b"")
        for file in files:
            (tmp_path / file.decode()).write_text(text)
        events = decoded(PROTOCOLS[name], golden.message, tmp_path) if files else []
        for event in events:
            if isinstance(event, Corrupt):
                found += 1
                assert SECRET not in f"{event.error} {event.error.sample} {event.error.args}"
                assert any(file.decode() in event.error.reason for file in files)
    assert found


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("\ud800", "a\udcffb.json", "file:///x/\udfff"):
        with pytest.raises(DecodeError, match="location is not a file name"):
            ClaimCheckStore(str(tmp_path)).read(name, 100)
