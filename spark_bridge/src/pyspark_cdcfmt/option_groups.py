"""The options of reading: the source of validation and docs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from cdcfmt_core import Option
from cdcfmt_core.decoding import DECODING_OPTIONS
from cdcfmt_files.sources.options import FILE_OPTIONS, SOURCE_OPTIONS
from cdcfmt_toolkit.topics.options import TOPIC_OPTIONS

INPUT_OPTIONS = (
    *SOURCE_OPTIONS,
    Option(
        name="minPartitions",
        type="int",
        minimum=1,
        help="Minimum number of Spark partitions to aim at; a large file gives a multiple of it. "
        "By default the driver's number of cores; for topics one per topic partition.",
    ),
    *FILE_OPTIONS,
)

SHAPE_OPTIONS = (
    Option(
        name="table",
        help="`database.table` or `database.schema.table`: the typed changes of that table "
        "instead of events. Put a part with a dot or blank in backticks. Case-sensitive.",
    ),
    Option(
        name="requireTables",
        type="bool",
        default=True,
        help="Check that `table`, each pattern of `includeTables`, each of `keyColumns` and each "
        "column of your schema occurs in messages that the driver samples before the read. If not, "
        "a batch fails and names the nearest match, a stream warns. An empty input passes.",
    ),
    Option(
        name="images",
        type="choice",
        choices=("both", "after", "none"),
        default="both",
        help="`after`: one row per change, without the before images of updates. "
        "`none`: events without images.",
    ),
    Option(
        name="imageFormat",
        type="choice",
        choices=("variant", "json"),
        default="variant",
        help="Events: type of `before` and `after`; `json` is text.",
    ),
    Option(
        name="includeColumns",
        type="bool",
        default=False,
        help="Events: add `columns`, the table's columns with their source types.",
    ),
    Option(
        name="keyColumns",
        type="list",
        default=(),
        help="Columns that identify a row, instead of the key columns in the messages.",
    ),
    Option(
        name="caseSensitive",
        type="bool",
        help="Match column names case-sensitively. The default is `spark.sql.caseSensitive`, which "
        "only tasks can see: set both if column names in your schema or an inferred one differ "
        "only in case.",
    ),
    Option(
        name="splitKeyUpdates",
        type="bool",
        default=False,
        help="Split an update that changes the key into a delete and an insert "
        "(always the case with `images=after`).",
    ),
    Option(
        name="metadataPrefix",
        default="_",
        help="Changes: prefix of the names of the added columns, instead of `_`.",
    ),
    Option(
        name="includeSource",
        type="bool",
        default=False,
        help="Changes without a schema: add `_source`, the position of the row's message. In your "
        "own schema, declare that column.",
    ),
    Option(
        name="inferSampleMessages",
        type="int",
        default=1000,
        minimum=1,
        help="Changes without a schema: how many row messages of the table to sample, in addition "
        "to those at the ends of files and topic partitions.",
    ),
)

MODE_OPTIONS = (
    Option(
        name="mode",
        type="choice",
        choices=("PERMISSIVE", "DROPMALFORMED", "FAILFAST"),
        default="PERMISSIVE",
        help="A message or row that cannot be decoded: a row with the reason in `_corrupt_record` "
        "(an error if the schema lacks that column), no row, or an error.",
    ),
    Option(
        name="incompleteRows",
        type="choice",
        choices=("fail", "emit", "unchanged", "corrupt"),
        default="fail",
        help="Changes: an insert or update whose message has only part of the row. `fail`: an "
        "error. `emit`: NULL, with the column names in `_absent`. `unchanged`: the same, but a bad "
        "row if it is an insert, which has no earlier values, or if TiCDC cut the message to its "
        "key, since the other columns may have changed. `corrupt`: a bad row.",
    ),
    Option(
        name="onSchemaChange",
        type="choice",
        choices=("fail", "rescue", "ignore", "corrupt"),
        help="Changes: a value that its column's type cannot hold, a column that an inferred "
        "schema lacks, or (in a stream) DDL that adds, drops or renames columns contrary to the "
        "schema. `fail` (default for values and DDL): an error. `rescue` (default for columns): "
        "into `_rescued`. `ignore`: left out or NULL, and counted. `corrupt`: a bad row.",
    ),
    Option(
        name="ignoreColumns",
        type="list",
        default=(),
        help="Changes in a stream: columns of the table that DDL may add, drop or rename contrary "
        "to the schema; `*` is all.",
    ),
    Option(
        name="onTruncate",
        type="choice",
        choices=("fail", "row", "ignore", "corrupt"),
        default="fail",
        help="Changes: the table is truncated or dropped, alone, with other tables or with its "
        "database, or renamed. `fail`: an error. `row`: a row with `_change_type` `truncate`. "
        "`ignore`: no row, and counted. `corrupt`: a bad row.",
    ),
    Option(
        name="invalidValues",
        type="choice",
        choices=("null", "fail", "text", "corrupt"),
        default="null",
        help="Zero dates, NaN decimals and other values that the type cannot hold: NULL and "
        "counted, an error, their text (in string columns), or a bad row.",
    ),
    Option(
        name="invalidText",
        type="choice",
        choices=("replace", "fail", "escape", "corrupt"),
        default="replace",
        help="Text with bytes that its charset cannot decode: U+FFFD and counted, an error, "
        "`\\xHH`, or a bad row.",
    ),
    Option(
        name="taskLog",
        type="choice",
        choices=("text", "json"),
        default="text",
        help="What a task logs: a readable line if messages or values were changed, or always a "
        "line of JSON, for log collectors.",
    ),
)

TYPE_OPTIONS = (
    Option(
        name="timeAs",
        type="choice",
        choices=("string", "interval", "micros"),
        default="string",
        help="TIME columns of an inferred schema: text as MySQL prints it, day-time interval, or "
        "microseconds.",
    ),
    Option(
        name="enumAs",
        type="choice",
        choices=("auto", "name", "index"),
        default="auto",
        help="ENUM and SET columns of an inferred schema: names if the messages have them, else "
        "numbers; always names; or always numbers.",
    ),
    Option(
        name="jsonAs",
        type="choice",
        choices=("variant", "string"),
        default="variant",
        help="JSON columns of an inferred schema.",
    ),
)

SCHEMA_OPTIONS = (
    Option(
        name="schemaStore",
        help="Folder for the table schemas found in messages, for formats whose rows lack their "
        "types. The tasks of a stream share it, and a restart reads it. One folder per source.",
    ),
    Option(
        name="onMissingSchema",
        type="choice",
        choices=("wait", "corrupt", "fail", "raw"),
        help="A row whose table schema is neither known nor found around it. `wait` (default in "
        "streams): keep searching for `schemaWaitTimeout`, then fail; nothing is lost. `corrupt` "
        "(default elsewhere): a bad row. `fail`: an error. `raw` (debezium's default elsewhere): "
        "its values as in the JSON.",
    ),
    Option(
        name="schemaWaitTimeout",
        type="duration",
        default=timedelta(seconds=300),
        help="How long `onMissingSchema=wait` waits for a schema to arrive.",
    ),
    Option(
        name="schemaSearchMessages",
        type="int",
        default=1_000_000,
        minimum=0,
        help="Topics: how many offsets before and after a task's own to search for a missing "
        "schema, in each partition.",
    ),
)

DUPLICATE_OPTIONS = (
    Option(
        name="deduplicate",
        type="choice",
        choices=("none", "watermark"),
        default="none",
        help="Topics: `watermark` drops repeated row changes: those with a commit_ts below the "
        "watermarks of all partitions at the start of the batch.",
    ),
    Option(
        name="watermarkLookback",
        type="int",
        default=100_000,
        minimum=1,
        help="Topics: how many offsets before a batch `deduplicate` searches for a partition's "
        "last watermark.",
    ),
)

OPTION_GROUPS = {
    "Input": INPUT_OPTIONS,
    "Topics": TOPIC_OPTIONS,
    "Messages": DECODING_OPTIONS,
    "Schemas": SCHEMA_OPTIONS,
    "Duplicates": DUPLICATE_OPTIONS,
    "Shape": SHAPE_OPTIONS,
    "Bad input": MODE_OPTIONS,
    "Types": TYPE_OPTIONS,
}


def bridge_options() -> Iterable[Option]:
    """Every option of the bridge, without those of transports."""
    return (option for group in OPTION_GROUPS.values() for option in group)
