"""Decoders and messages for the tests of dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cdcfmt_core import opening
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
)


def open_decoder(*, claims: Path | None = None, **options: Any) -> MessageDecoder:
    if claims is not None:
        options["claimCheckStorageUri"] = str(claims)
    return opening.open_decoder("canal-json", options)


def decode(value: str | bytes | dict[str, Any], **options: Any) -> list[Event]:
    data = json.dumps(value) if isinstance(value, dict) else value
    data = data if isinstance(data, bytes) else data.encode()
    return open_decoder(**options).decode(Message(None, data))


def decode_rows(value: str | bytes | dict[str, Any], **options: Any) -> list[RowChange]:
    events = decode(value, **options)
    for event in events:
        assert isinstance(event, RowChange), event
    return [event for event in events if isinstance(event, RowChange)]


def decode_row(value: str | bytes | dict[str, Any], **options: Any) -> RowChange:
    (event,) = decode_rows(value, **options)
    return event


def decode_ddl(value: str | dict[str, Any], **options: Any) -> SchemaChange:
    (event,) = decode(value, **options)
    assert isinstance(event, SchemaChange)
    return event


def corrupt_reason(value: str | dict[str, Any], **options: Any) -> str:
    (event,) = decode(value, **options)
    assert isinstance(event, Corrupt)
    return event.error.summary


TICDC_DDL = """{
    "id": 0,
    "database": "test",
    "table": "",
    "pkNames": null,
    "isDdl": true,
    "type": "QUERY",
    "es": 1639633094670,
    "ts": 1639633095489,
    "sql": "drop database if exists test",
    "sqlType": null,
    "mysqlType": null,
    "data": null,
    "old": null,
    "_tidb": {
        "commitTs": 429918007904436226
    }
}"""  # [ticdc] DDL Event


TICDC_DML = """{
    "id": 0,
    "database": "test",
    "table": "tp_int",
    "pkNames": [
        "id"
    ],
    "isDdl": false,
    "type": "INSERT",
    "es": 1639633141221,
    "ts": 1639633142960,
    "sql": "",
    "sqlType": {
        "c_bigint": -5,
        "c_int": 4,
        "c_mediumint": 4,
        "c_smallint": 5,
        "c_tinyint": -6,
        "id": 4
    },
    "mysqlType": {
        "c_bigint": "bigint",
        "c_int": "int",
        "c_mediumint": "mediumint",
        "c_smallint": "smallint",
        "c_tinyint": "tinyint",
        "id": "int"
    },
    "data": [
        {
            "c_bigint": "9223372036854775807",
            "c_int": "2147483647",
            "c_mediumint": "8388607",
            "c_smallint": "32767",
            "c_tinyint": "127",
            "id": "2"
        }
    ],
    "old": null,
    "_tidb": {
        "commitTs": 429918007904436226
    }
}"""  # [ticdc] DML Event


TICDC_WATERMARK = """{
    "id": 0,
    "database": "",
    "table": "",
    "pkNames": null,
    "isDdl": false,
    "type": "TIDB_WATERMARK",
    "es": 1640007049196,
    "ts": 1640007050284,
    "sql": "",
    "sqlType": null,
    "mysqlType": null,
    "data": null,
    "old": null,
    "_tidb": {
        "watermarkTs": 429918007904436226
    }
}"""  # [ticdc] WATERMARK Event


COMMIT_TS = 429918007904436226


TP_INT = {
    "c_bigint": 9223372036854775807,
    "c_int": 2147483647,
    "c_mediumint": 8388607,
    "c_smallint": 32767,
    "c_tinyint": 127,
    "id": 2,
}


def dml(**fields: Any) -> dict[str, Any]:
    """TiCDC's DML example with other fields; None means null, ``...`` drops a field."""
    wire: dict[str, Any] = json.loads(TICDC_DML) | fields
    return {name: value for name, value in wire.items() if value is not ...}


def table(types_of: dict[str, str | None], *rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A message over columns of these types."""
    return dml(mysqlType=types_of, sqlType=dict.fromkeys(types_of, 12), data=list(rows), **fields)


OLD = {name: str(value) for name, value in TP_INT.items()}


NEW = OLD | {"c_int": "0", "c_tinyint": "0"}


CANAL_BATCH = """{
    "data": [
        {"id": "1", "name": "b", "price": "1.50"},
        {"id": "2", "name": "x", "price": "2.50"},
        {"id": "3", "name": "y", "price": "3.50"}
    ],
    "database": "shop",
    "es": 1639633141000,
    "gtid": "",
    "id": 5,
    "isDdl": false,
    "mysqlType": {"id": "INT(11) UNSIGNED", "name": "VARCHAR(10)", "price": "DECIMAL(8, 2)"},
    "old": [
        {"name": "a"},
        {"name": "x", "price": null},
        {"name": "z", "price": "3.50"}
    ],
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": 4, "name": 12, "price": 3},
    "table": "items",
    "ts": 1639633142960,
    "type": "UPDATE"
}"""  # [canal] the columns that a row changed stay in `old` of all rows after it


CKAFKA_UPDATE = """{
    "data": [{"id": "1", "name": "b"}],
    "database": "shop", "es": 1639633141, "id": 0, "isDdl": false, "mysqlType": null,
    "old": [{"id": "1", "name": "a"}], "pkNames": null, "sql": "", "sqlType": null,
    "table": "items", "ts": 1639633142, "type": "UPDATE"
}"""  # [ckafka]


def drs(**fields: Any) -> dict[str, Any]:
    return {
        "mysqlType": {"id": "int(11)", "name": "varchar(10)"},
        "id": 13,
        "es": 1639633141000,
        "ts": 1639633142960,
        "database": "shop",
        "table": "items",
        "type": "INIT",
        "isDdl": False,
        "sql": "",
        "sqlType": {"id": 4, "name": 12},
        "data": [{"id": "1", "name": "a"}],
        "old": None,
        "pkNames": ["id"],
    } | fields
