"""No message raises, hangs or loses its neighbours; errors have reason and position."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML
from hypothesis import given
from hypothesis import strategies as st
from support.bad_input import JSON, changed, check_error, check_row, paths_of, patient
from support.golden_data import open_decoder

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Message, RowChange, SchemaChange


@cache
def decoder(binary: str = "auto") -> MessageDecoder:
    return open_decoder(protocol="cloudcanal-json", binaryEncoding=binary)


def decode(value: bytes | None, binary: str = "auto") -> list[Event]:
    """The events of a message, after checks that hold for all messages."""
    events = decoder(binary).decode(Message(None, value, topic="t", partition=3, offset=99))
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, "cloudcanal-json")
        elif isinstance(event, RowChange):
            check_row(event)
    return events


def the_error(wire: dict[str, Any] | bytes) -> DecodeError:
    (event,) = decode(wire if isinstance(wire, bytes) else text_of(wire))
    assert isinstance(event, Corrupt), event
    return event.error


def text_of(wire: object) -> bytes:
    return json.dumps(wire).encode()


UPDATE = DML | {
    "action": "UPDATE",
    "data": [{"a": "1", "b": "1.5", "c": "\xff", "d": "2024-01-02 03:04:05", "e": "x"}],
    "before": [{"a": "2", "b": None}],
    "dbValType": {"a": "int", "b": "decimal(9,2)", "c": "blob", "d": "timestamp", "e": "text"},
}
MESSAGES = [UPDATE, DML | {"action": "DELETE"}, DDL_EXAMPLE, {"entryType": "TRANSACTIONEND"}]


def test_the_messages_are_good() -> None:
    for wire in MESSAGES:
        assert not isinstance(decode(text_of(wire))[0], Corrupt)
    assert decode(None) == []


@given(wire=JSON)
@patient
def test_any_json(wire: object) -> None:
    (event,) = decode(text_of(wire))
    assert isinstance(event, Corrupt)


@pytest.mark.parametrize("binary", ["auto", "latin1", "base64", "hex"])
@given(data=st.data(), wire=st.sampled_from(MESSAGES))
@patient
def test_any_part_dropped_or_replaced(binary: str, data: st.DataObject, wire: Any) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths_of(wire)[1:] or [()]))
        wire = changed(wire, path, data.draw(st.just(...) | JSON if path else JSON))
    assert decode(text_of(wire), binary)


WRONG: dict[str, list[Any]] = {
    "action": [1, True, [], {}, "UPSERT", "", None],
    "entryType": [1, [], {}, "TRANSACTIONEND"],
    "isDdl": ["false", 2, [], {}],
    "ddl": ["false", 2, [], {}],
    "db": [1, True, [], {}],
    "schema": [1, True, [], {}],
    "table": [1, False, [], {}, "", None],
    "pks": ["id", 1, {}, [1], [None]],
    "execTs": ["1669789152000", 1.5, True, [], -1, 1 << 62],
    "sendTs": ["1669789152000", 1.5, True, [], -1, 1 << 62],
    "dbValType": ["int", 1, ["int"]],
    "jdbcType": ["4", 1, [4]],
    "data": ["x", 1, True, {"a": "1"}, [], None],
    "before": ["x", 1, True, {"a": "1"}, [{}, {}]],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in WRONG.items() for value in values],
    ids=repr,
)
def test_a_field_of_another_type(field: str, value: Any) -> None:
    assert the_error(UPDATE | {field: value}).field == field


@pytest.mark.parametrize("changes", ["x", {"table": []}, {"table": {"columns": [1]}}])
def test_table_changes_of_another_shape(changes: Any) -> None:
    """The statement is kept."""
    (event,) = decode(text_of(DDL_EXAMPLE | {"tableChanges": changes}))
    assert isinstance(event, SchemaChange)
    assert (event.query, event.table_schema) == (DDL_EXAMPLE["sql"], None)
    assert event.extra is not None
    assert event.extra["schema_error"].startswith("tableChanges")


def test_invalid_utf8_is_preserved_in_text() -> None:
    (event,) = decode(text_of(UPDATE).replace(b'"x"', b'"\xff"'))
    assert isinstance(event, RowChange)
    assert event.after is not None
    assert event.after.values["e"] == "\udcff"
