"""Queries by hand: rows with both images to messages by ``to_json``.

The frame has ``op``, ``commit_ts`` and the structs ``before`` and ``after``.  Each query gives
``key`` and ``value``, with the members that cdcfmt writes, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from spark_queries import COLUMNS, SOURCE_TIME_ZONE

SOURCE_TYPES = {
    "id": "bigint unsigned",
    "order_no": "varchar(32)",
    "payload": "varbinary(64)",
    "remark": "text",
    "address": "varchar(255)",
    "created_at": "datetime(3)",
    "updated_at": "timestamp",
}
"""The value of ``columnTypes`` for the columns, beside the types of the rows."""

_MYSQL_TYPES = {
    "id": ("bigint unsigned", -5),
    "order_no": ("varchar", 12),
    "customer_id": ("bigint", -5),
    "status": ("int", 4),
    "amount": ("decimal", 3),
    "discount": ("decimal", 3),
    "quantity": ("int", 4),
    "is_gift": ("tinyint", -6),
    "weight": ("double", 8),
    "score": ("float", 7),
    "address": ("varchar", 12),
    "remark": ("text", 2005),
    "payload": ("varbinary", 2004),
    "attrs": ("longtext", 2005),
    "created_at": ("datetime", 93),
    "updated_at": ("timestamp", 93),
}
_AS_JSON = {"ignoreNullFields": "false"}


def _now() -> Any:
    return F.unix_millis(F.current_timestamp())


def _struct(**values: Any) -> Any:
    return F.struct(*(value.alias(name) for name, value in values.items()))


def _is_there(image: str, value: Any) -> Any:
    return F.when(F.col(image).isNotNull(), value)


def _canal_json(frame: DataFrame) -> DataFrame:
    def text(column: Any, name: str) -> Any:
        if name == "payload":
            return F.decode(column, "ISO-8859-1")
        if name == "created_at":
            return F.date_format(column, "yyyy-MM-dd HH:mm:ss.SSS")
        if name == "updated_at":
            wall = F.from_utc_timestamp(column, SOURCE_TIME_ZONE)
            return F.date_format(wall, "yyyy-MM-dd HH:mm:ss")
        return column.cast("string")

    def rows(image: str) -> Any:
        texts = {name: text(F.col(image)[name], name) for name in COLUMNS}
        return _is_there(image, F.array(_struct(**texts)))

    is_delete = F.col("op") == "DELETE"
    message = _struct(
        id=F.lit(0),
        database=F.lit("bench"),
        table=F.lit("orders"),
        pkNames=F.array(F.lit("id")),
        isDdl=F.lit(False),
        type=F.col("op"),
        es=F.shiftright("commit_ts", 18),
        ts=_now(),
        sql=F.lit(""),
        sqlType=_struct(**{name: F.lit(code) for name, (_, code) in _MYSQL_TYPES.items()}),
        mysqlType=_struct(**{name: F.lit(text) for name, (text, _) in _MYSQL_TYPES.items()}),
        old=F.when(~is_delete, rows("before")),
        data=F.when(is_delete, rows("before")).otherwise(rows("after")),
        _tidb=_struct(commitTs=F.col("commit_ts")),
    )
    return frame.select(
        F.lit(None).cast("string").alias("key"), F.to_json(message, _AS_JSON).alias("value")
    )


def _debezium(frame: DataFrame) -> DataFrame:
    def value(column: Any, name: str) -> Any:
        if name == "payload":
            return F.base64(column)
        if name in ("amount", "discount"):
            return column.cast("double")
        if name == "created_at":
            return F.unix_millis(column.cast("timestamp"))
        if name == "updated_at":
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss'Z'")
        return column

    def image(name: str) -> Any:
        values = {column: value(F.col(name)[column], column) for column in COLUMNS}
        return _is_there(name, _struct(**values))

    source = _struct(
        version=F.lit("2.4.0.Final"),
        connector=F.lit("TiCDC"),
        name=F.lit("default"),
        ts_ms=F.shiftright("commit_ts", 18),
        snapshot=F.lit("false"),
        db=F.lit("bench"),
        table=F.lit("orders"),
        server_id=F.lit(0),
        gtid=F.lit(None).cast("string"),
        file=F.lit(""),
        pos=F.lit(0),
        row=F.lit(0),
        thread=F.lit(0),
        query=F.lit(None).cast("string"),
        commit_ts=F.col("commit_ts"),
        cluster_id=F.lit("default"),
    )
    payload = _struct(
        source=source,
        ts_ms=_now(),
        transaction=F.lit(None).cast("string"),
        op=F.element_at(
            F.create_map(*map(F.lit, ("INSERT", "c", "UPDATE", "u", "DELETE", "d"))), F.col("op")
        ),
        before=image("before"),
        after=image("after"),
    )
    key = _struct(payload=_struct(id=F.coalesce("after.id", "before.id")))
    return frame.select(
        F.to_json(key).alias("key"), F.to_json(_struct(payload=payload), _AS_JSON).alias("value")
    )


BY_HAND: dict[str, Callable[[DataFrame], DataFrame]] = {
    "canal-json": _canal_json,
    "debezium": _debezium,
}
"""Protocol → the query."""

OPTIONS = {
    "canal-json": {"enableTidbExtension": "true"},
    "debezium": {"debeziumDisableSchema": "true"},
}
"""Of cdcfmt, for the same messages."""
