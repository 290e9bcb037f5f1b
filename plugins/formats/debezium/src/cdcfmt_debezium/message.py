"""Field names and constants of Debezium.

https://docs.pingcap.com/tidb/stable/ticdc-debezium, "Message format";
https://debezium.io/documentation/reference/stable/connectors/mysql.html, "Data change
events" and "Schema change topic"; Kafka Connect's ``JsonConverter`` for ``schema`` and
``payload``; CloudCanal's "MQ message formats", Debezium Envelope.
"""

from __future__ import annotations

from typing import Final, Literal

from cdcfmt_core.events import Op

OP_OF_WORD: Final[dict[str, Op]] = {
    "c": "insert",
    "i": "insert",
    "u": "update",
    "d": "delete",
    "r": "read",
    "t": "truncate",
}
"""``i`` is CloudCanal's insert."""

MESSAGE: Final = "m"
"""TiCDC's watermark; from connectors, a logical message of the source's log."""

TICDC: Final = "TiCDC"

MYSQL_CONNECTORS: Final = frozenset({"mysql", "mariadb", "vitess", TICDC, "MySQL"})
"""Connectors whose ``tableChanges`` have MySQL's types; ``MySQL`` is CloudCanal's name."""

WITHOUT_UNSIGNED: Final = frozenset(
    {"postgresql", "sqlserver", "oracle", "db2", "as400", "informix", "spanner", "cassandra"}
    | {"yugabytedb", "cockroachdb", "greenplum", "hana", "dameng"}
)
"""Connectors, in lower case, of databases without unsigned integers."""

OF_MYSQL: Final = frozenset({"file", "gtid", "server_id"})
"""Fields of ``source`` that only connectors of MySQL and MariaDB have."""

SOURCE_TAKEN: Final = frozenset(
    {"db", "schema", "table", "ts_ms", "ts_us", "ts_ns", "commit_ts"}
    # Constants of the producer.
    | {"version", "connector", "name"}
)
"""Fields of ``source`` that are not in ``extra``: the event has its own fields for them, or they
do not describe the event."""

PAYLOAD_KNOWN: Final = frozenset(
    {"op", "before", "after", "source", "transaction", "ts_ms", "ts_us", "ts_ns"}
)

HEARTBEAT_SCHEMA: Final = "io.debezium.connector.common.Heartbeat"
NOTIFICATION_FIELDS: Final = frozenset(
    {"id", "aggregate_type", "type", "additional_data", "timestamp"}
)
TRANSACTION_FIELDS: Final = frozenset({"status", "id", "event_count", "data_collections"})
TRANSACTION_STATUS: Final[dict[str, Literal["begin", "commit"]]] = {
    "BEGIN": "begin",
    "END": "commit",
}

FLATTENED_PREFIX: Final = "__"
"""Default prefix of the fields and headers that ExtractNewRecordState adds."""

DELETED_FIELD: Final = "__deleted"
"""Its field of a rewritten delete, under every prefix."""

ROUTED_TABLE: Final = "__dbz__physicalTableIdentifier"
"""Field that ByLogicalTableRouter adds to keys; it is not a column."""

DEFAULT_PLACEHOLDER: Final = "__debezium_unavailable_value"
