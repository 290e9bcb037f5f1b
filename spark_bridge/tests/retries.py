"""A Spark of its own, whose tasks are retried: run by test_retries.py.

``retries.py FOLDER``: writes rows from tasks whose first attempts die in various ways.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import LongType

COMMIT_TS = 429918007904436226
ROWS = 30_000


def main(folder: Path) -> None:
    spark = (
        # Three attempts a task.
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    results = {
        "killed": attempt(rows(spark, die), folder / "killed"),
        "raising": attempt(rows(spark, fail), folder / "raising"),
    }
    print(json.dumps(results))
    spark.stop()


def attempt(df: DataFrame, out: Path) -> dict[str, object]:
    """What writing ended in, and what is there then."""
    error = None
    try:
        df.write.format("cdc").mode("append").option("protocol", "canal-json").option(
            "typesFrom", "values"
        ).option("maxRecordsPerFile", 4_000).save(str(out))
    except Exception as failed:
        error = str(failed).partition("\n")[0][:300]
    spark = df.sparkSession
    ids = spark.read.format("cdc").load(str(out)).selectExpr("after:id::bigint id")
    counted = ids.selectExpr("count(*) n", "count(distinct id) ids").first()
    assert counted is not None
    return {
        "error": error,
        "rows": counted.n,
        "ids": counted.ids,
        "files": len(list(out.glob("part-*"))),
        "staged": len(list((out / "_cdcfmt/staged").iterdir())),
    }


def rows(spark: SparkSession, spoil: object) -> DataFrame:
    """Events of two tasks, in the middle of which something happens."""
    numbers = spark.range(0, ROWS, 1, 2).select(spoil(f.col("id")).alias("id"))  # type: ignore[operator]
    return numbers.selectExpr(
        "'row' kind",
        "'insert' op",
        "'shop' database",
        "'orders' table",
        "array('id') key_columns",
        "to_variant_object(named_struct('id', id)) after",
        f"{COMMIT_TS}L commit_ts",
    )


def _spoiler(what: str) -> object:
    def spoil(batches: Iterator[pa.Array]) -> Iterable[pa.Array]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            # Batches before it went through the writer already.
            if number == 1 and context.partitionId() == 0:
                if what == "die" and context.attemptNumber() == 0:
                    os._exit(1)
                if what == "fail" and context.attemptNumber() < 2:
                    raise ValueError("the input broke")
            yield batch

    spoil.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return arrow_udf(spoil, LongType())


die, fail = _spoiler("die"), _spoiler("fail")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
