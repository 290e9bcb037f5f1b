"""The conformance kit on the examples of CloudCanal's document: there is no real data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import attrs
from cloudcanal_messages import DDL_EXAMPLE, DML

from cdcfmt_core.events import Event, Message, RowChange, SchemaChange, Transaction
from cdcfmt_testing import Carries, Case, CodecTests, RoundTrip

CARRIES = Carries(
    times=frozenset({"source_time", "emit_time"}),
    ddl_tables=1,
    statuses=("begin", "commit"),
    transaction_ids=False,
)


def normalise(event: Event, decoded: Any) -> Event:
    """All events have a batch id; transactions and heartbeats keep their original action."""
    extra: dict[str, Any] = {"bid": 0}
    if isinstance(event, Transaction):
        extra["entry_type"] = {"begin": "TRANSACTIONBEGIN", "commit": "TRANSACTIONEND"}[
            event.status
        ]
    elif not isinstance(event, RowChange | SchemaChange):
        extra["entry_type"] = "HEARTBEAT"
    return attrs.evolve(event, extra=extra)  # type: ignore[misc]


def in_encoding(encoding: Literal["latin1", "base64", "hex"]) -> RoundTrip:
    """The byte encoding is an option of reading and writing."""
    options = {"binaryEncoding": encoding}
    return RoundTrip(
        name=encoding, carries=CARRIES, writing=options, reading=options, normalise=normalise
    )


class TestCloudCanalJson(CodecTests):
    codec = "cloudcanal-json"
    known_failures: ClassVar = {
        "test_rows_name_their_keys": "`pks` is empty in the document's example"
    }
    differences: ClassVar = {
        "*: (order)": "the examples' order is that of test_encode.py, not of this dictionary",
        "db_test.table_test: before": "an insert and a delete have none",
        **{
            f"{event}: {field}": "no row, no table: the document has no example of such a message"
            for event in ("transaction", "heartbeat")
            for field in ("db", "schema", "table", "dbValType.*", "jdbcType.*")
        },
    }
    round_trips = (in_encoding("latin1"), in_encoding("base64"), in_encoding("hex"))

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        bare = DML | {"action": "", "data": [], "before": []}
        wires = [
            *(DML | {"action": action} for action in ("INSERT", "UPDATE", "DELETE")),
            DDL_EXAMPLE,
            *(bare | {"entryType": entry} for entry in ("TRANSACTIONEND", "HEARTBEAT")),
        ]
        yield Case("document", tuple(Message(None, json.dumps(wire).encode()) for wire in wires))
