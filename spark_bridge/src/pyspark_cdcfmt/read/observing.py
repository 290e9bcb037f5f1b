"""How a query gets on: metrics over its rows, and how far its source is complete."""

from __future__ import annotations

from typing import get_args

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

from cdcfmt_core.events import Kind, Op

TABLES_SHOWN = 100
TABLES_TRACKED = 10_000
"""What ``by_table`` lists at most, and counts at most while it is exact (three quarters)."""

_CHANGE_TYPES = ("insert", "update_preimage", "update_postimage", "delete", "truncate")


def observed(df: DataFrame, name: str | Observation = "cdc", *, prefix: str = "_") -> DataFrame:
    """``df`` with metrics over its rows, which stand in the progress of a streaming query.

    ``df`` is in either shape; what of it was left out is not counted.  ``name`` is that of
    the metrics, or an Observation to read them after a batch query.  ``prefix`` is the
    ``metadataPrefix`` of changes.

    Metrics of events: ``events``; a count for each kind and op, by its name; ``by_table``,
    an array of (item, count) for the 100 most frequent of ``database.table op``, with the
    kind in place of an op or table that there is not; ``highest_commit_ts`` of rows,
    ``highest_watermark``.
    Of changes: ``changes``; a count for each change type; ``corrupt``; ``highest_commit_ts``;
    ``invalid``, how many rows have a value that the options changed, and ``invalid_columns``, an
    array of (item, count) for the most frequent columns or combinations of them.
    Counts are exact, those in ``by_table`` as long as there are fewer than 7500 items.
    """
    columns = set(df.columns)
    if "kind" in columns:
        metrics = _of_events(columns)
    elif columns & {prefix + added for added in ("change_type", "corrupt_record")}:
        metrics = _of_changes(columns, prefix)
    else:
        raise ValueError(
            "observed takes events, with their column kind, or changes with "
            f"{prefix}change_type; the DataFrame has {', '.join(df.columns)}"
        )
    return df.observe(name, *(metric.alias(alias) for alias, metric in metrics.items()))


def resolved_ts(events: DataFrame, *, partitions: int | None = None) -> DataFrame:
    """The commit_ts below which nothing is missing: one row a topic.

    Columns: ``topic``; ``resolved_ts``, the minimum over the topic's partitions of each
    one's highest watermark; ``resolved_time``, its physical part; ``partitions``, how many
    were seen.  Every change with a smaller commit_ts is in ``events``, if these begin at the
    topic's start.

    A partition without a watermark makes ``resolved_ts`` 0, as it may still send anything;
    so does one of ``partitions``, the topic's number of them, that has no event at all.
    Messages without topic or partition, as from files, count as one of each.
    """
    highest = f.max(f.when(f.col("kind") == "watermark", f.col("commit_ts")))
    by_partition = events.groupBy(
        f.col("_source.topic").alias("topic"), f.col("_source.partition").alias("partition")
    ).agg(highest.alias("highest"))
    lowest = f.min(f.coalesce("highest", f.lit(0)))
    if partitions is not None:
        lowest = f.when(f.count("*") >= partitions, lowest).otherwise(f.lit(0))
    resolved = by_partition.groupBy("topic").agg(
        lowest.cast("bigint").alias("resolved_ts"), f.count("*").alias("partitions")
    )
    milliseconds = f.shiftright(f.nullif("resolved_ts", f.lit(0)), 18)
    return resolved.select(
        "topic",
        "resolved_ts",
        f.timestamp_millis(milliseconds).alias("resolved_time"),
        "partitions",
    )


def _of_events(columns: set[str]) -> dict[str, Column]:
    metrics = {"events": f.count("*")}
    metrics |= {kind: f.count_if(f.col("kind") == kind) for kind in get_args(Kind)}
    has_op, has_table = "op" in columns, {"database", "table"} <= columns
    if has_op:
        metrics |= {op: f.count_if(f.col("op") == op) for op in get_args(Op)}
    if has_table:
        names = [f.when(f.col(part) != "", f.col(part)) for part in ("database", "table")]
        if "schema" in columns:
            names.insert(1, f.col("schema"))
        what = f.coalesce("op", "kind") if has_op else f.col("kind")
        # concat_ws leaves NULLs out.
        table = f.when(names[-1].isNotNull(), f.concat_ws(".", *names))
        item = f.concat_ws(" ", table, what)
        metrics["by_table"] = f.call_function("approx_top_k", item, *_limits())
    if "commit_ts" in columns:
        for name, kind in (("highest_commit_ts", "row"), ("highest_watermark", "watermark")):
            metrics[name] = f.max(f.when(f.col("kind") == kind, f.col("commit_ts")))
    return metrics


def _limits() -> tuple[Column, Column]:
    return f.lit(TABLES_SHOWN), f.lit(TABLES_TRACKED)


def _of_changes(columns: set[str], prefix: str) -> dict[str, Column]:
    metrics = {"changes": f.count("*")}
    if prefix + "change_type" in columns:
        for change_type in _CHANGE_TYPES:
            metrics[change_type] = f.count_if(f.col(f"`{prefix}change_type`") == change_type)
    if prefix + "corrupt_record" in columns:
        metrics["corrupt"] = f.count_if(f.col(f"`{prefix}corrupt_record`").isNotNull())
    if prefix + "invalid" in columns:
        invalid = f.col(f"`{prefix}invalid`")
        metrics["invalid"] = f.count_if(f.size(invalid) > 0)
        # Few combinations of columns are to be expected.
        combined = f.when(f.size(invalid) > 0, f.concat_ws(", ", invalid))
        counted = f.call_function("approx_top_k", combined, *_limits())
        metrics["invalid_columns"] = f.filter(counted, lambda each: each["item"].isNotNull())
    if prefix + "commit_version" in columns:
        metrics["highest_commit_ts"] = f.max(f.col(f"`{prefix}commit_version`"))
    return metrics
