"""The changes of one table, and the table that AUTO CDC keeps up to date from them."""

from importlib.resources import files

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from pyspark_cdcfmt import SEQUENCE

MESSAGES = str(files("pyspark_cdcfmt.demo") / "data" / "canal-json.jsonl.gz")
SEQUENCED = f"_change_type STRING, _sequence {SEQUENCE.simpleString()}"


@dp.temporary_view
def changes() -> DataFrame:
    return (
        SparkSession.active()
        .readStream.format("cdc")
        .option("protocol", "canal-json")
        .option("table", "golden.txn_a")
        .option("images", "after")
        .option("mode", "FAILFAST")
        .schema(f"id INT, v STRING, n INT, {SEQUENCED}")
        .load(MESSAGES)
    )


dp.create_streaming_table("txn_a")
dp.create_auto_cdc_flow(
    target="txn_a",
    source="changes",
    keys=["id"],
    sequence_by="_sequence",
    apply_as_deletes="_change_type = 'delete'",
    except_column_list=["_change_type", "_sequence"],
    stored_as_scd_type=1,
)
