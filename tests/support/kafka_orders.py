"""Messages of table shop.orders, each an insert that its id tells from all others."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cdcfmt_core.events import Message

SCHEMA = (
    "id int, name string, _change_type string,"
    " _corrupt_record struct<reason: string, key: binary, value: binary>"
)


def order(id_: int, partition: int | None = None, timestamp: int | None = None) -> Message:
    """The insert of an order as Canal's flat message."""
    value = {
        "id": 0,
        "database": "shop",
        "table": "orders",
        "pkNames": ["id"],
        "isDdl": False,
        "type": "INSERT",
        "es": 1_700_000_000_000 + id_,
        "ts": 1_700_000_000_000 + id_,
        "sql": "",
        "sqlType": {"id": 4, "name": 12},
        "mysqlType": {"id": "int", "name": "varchar(20)"},
        "data": [{"id": str(id_), "name": f"order {id_}"}],
        "old": None,
    }
    return Message(
        b"%d" % id_, json.dumps(value).encode(), partition=partition, timestamp=timestamp
    )


def orders(start: int, end: int, partitions: int = 1) -> Iterator[Message]:
    """Orders from ``start`` to ``end``, dealt out to the partitions in turns."""
    return (order(id_, id_ % partitions) for id_ in range(start, end))
