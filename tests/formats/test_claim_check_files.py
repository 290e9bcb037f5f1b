"""A claim check may refer to a file that is not a message, or have an invalid name."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.golden_data import load_variant, open_decoder

from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Event, Image, Message, RowChange, TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.registry import default_registry
from cdcfmt_toolkit.large_messages import ClaimCheckStore
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import RowMaker
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.policy import BadValue
from pyspark_cdcfmt.rows.read_task import ReadTask, TaskState
from pyspark_cdcfmt.rows.row_schemas import events_schema

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


def test_impossible_file_name(tmp_path: Path) -> None:
    for name in ("\ud800", "a\udcffb.json", "file:///x/\udfff"):
        with pytest.raises(DecodeError, match="location is not a file name"):
            ClaimCheckStore(str(tmp_path)).read(name, 100)


@pytest.mark.parametrize("name", ["canal-json", "simple-json"])
def test_no_value_of_a_bad_row_is_shown(name: str, tmp_path: Path) -> None:
    """Real files, in which numbers became texts: the error is that of one row or column."""
    variant = load_variant(name, "claim-check")
    assert variant.claims is not None
    for path in variant.claims.glob("*.json"):
        wrapped = json.loads(path.read_bytes())
        value = re.sub(rb'":"-?\d+"', b'":"hunter2"', base64.b64decode(wrapped["value"]))
        wrapped["value"] = base64.b64encode(value).decode()
        (tmp_path / path.name).write_text(json.dumps(wrapped))
    codec = default_registry().get_codec(PROTOCOLS[name])
    options: dict[str, Any] = validate({"protocol": codec.name}, DECODING_OPTIONS, owner="test")
    own = validate({}, codec.options, owner="test")
    store = ClaimCheckStore(str(tmp_path))
    decoder = MessageDecoder(options, own, EventFilter(), claim_checks=store)
    found = 0
    for golden in variant.messages:
        for event in decoder.decode(golden.message):
            if isinstance(event, Corrupt) and _FILE.search(event.error.reason.encode()):
                found += 1
                assert SECRET not in f"{event.error} {event.error.sample} {event.error.args}"
                assert event.error.field
    assert found


@pytest.mark.parametrize("claimed", [True, False])
def test_values_beyond_sparks_types_are_not_shown(claimed: bool) -> None:
    extra = {"claim_check": "a.json"} if claimed else {}
    event = RowChange("insert", TableSchema("d", "t", ()), None, Image({}), extra=extra)
    options = parse_options({"path": "x"})
    task = ReadTask(events_schema(options), options)
    state = TaskState.of(task)
    shape = EventRows(task, state.policy)
    make = RowMaker(shape, open_decoder(protocol="canal-json"), task, state)
    error = BadValue("'hunter2' is not a number, nor is 123456")
    reason = make._bad_row(Message(None, b""), event, error).error.reason
    assert ("hunter2" in reason or "123456" in reason) is not claimed
    assert "is not a number" in reason
