"""The conformance kit on the examples of CloudCanal's document: there is no real data."""

from __future__ import annotations

import json
from collections.abc import Iterable

from cloudcanal_messages import DDL_EXAMPLE, DML

from cdcfmt_core.events import Message
from cdcfmt_core.testing import Case, CodecTests


class TestCloudCanalJson(CodecTests):
    codec = "cloudcanal-json"

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        bare = DML | {"action": "", "data": [], "before": []}
        wires = [
            *(DML | {"action": action} for action in ("INSERT", "UPDATE", "DELETE")),
            DDL_EXAMPLE,
            *(bare | {"entryType": entry} for entry in ("TRANSACTIONEND", "HEARTBEAT")),
        ]
        yield Case("document", tuple(Message(None, json.dumps(wire).encode()) for wire in wires))
