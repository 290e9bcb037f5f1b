"""The options of reading: the source of validation and docs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from cdcfmt_core import Option
from cdcfmt_core.decoding import DECODING_OPTIONS
from cdcfmt_core.io.sources.options import FILE_OPTIONS
from cdcfmt_core.io.topics.options import TOPIC_OPTIONS

INPUT_OPTIONS = (
    Option(
        name="path",
        help="File, directory (read with its subdirectories) or glob; `load(path)` sets it.",
    ),
    Option(
        name="paths",
        type="list",
        default=(),
        help="Several of them; `load([...])` sets it.",
    ),
    Option(
        name="maxPartitionBytes",
        type="bytes",
        default=128 << 20,
        minimum=1,
        help="Most bytes of files in one Spark partition; larger files are split at lines.",
    ),
    Option(
        name="minPartitions",
        type="int",
        minimum=1,
        help="Fewest Spark partitions to aim at; by default the driver's number of cores, and for "
        "topics one for each partition.",
    ),
    Option(
        name="maxFilesPerTrigger",
        type="int",
        default=1000,
        minimum=1,
        help="Streams: most files in one micro-batch.",
    ),
    Option(
        name="maxFileAge",
        type="duration",
        default=timedelta(days=1),
        help="Streams: how much older than the newest file read so far a new file may be. "
        "An older one is passed over, with a warning.",
    ),
    *FILE_OPTIONS,
)

SHAPE_OPTIONS = (
    Option(
        name="table",
        help="`database.table` or `database.schema.table`: the typed changes of that table "
        "instead of events. A part with a dot or blank stands in backticks; exact case.",
    ),
    Option(
        name="requireTables",
        type="bool",
        default=True,
        help="`table`, each pattern of `includeTables`, each of `keyColumns` and each column of "
        "your schema must be known to the messages that the driver looks at before it reads: a "
        "batch fails and names the nearest, a stream warns. An empty input passes. `false`: no "
        "check.",
    ),
    Option(
        name="images",
        type="choice",
        choices=("both", "after", "none"),
        default="both",
        help="`after`: one row per change, without the images before updates. "
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
        help="Columns that identify a row, in place of those that the wire names.",
    ),
    Option(
        name="caseSensitive",
        type="bool",
        help="Match names of columns with case. By default as `spark.sql.caseSensitive` says, "
        "which Spark shows to tasks only: set both where inference or a schema of yours meets "
        "names that differ in nothing but case.",
    ),
    Option(
        name="splitKeyUpdates",
        type="bool",
        default=False,
        help="An update that changes the key becomes a delete and an insert "
        "(always so under `images=after`).",
    ),
    Option(
        name="metadataPrefix",
        default="_",
        help="Changes: what the names of the added columns start with, instead of `_`.",
    ),
    Option(
        name="includeSource",
        type="bool",
        default=False,
        help="Changes without a schema: add `_source`, where the row's message was read; a schema "
        "has it by naming it.",
    ),
    Option(
        name="inferSampleMessages",
        type="int",
        default=1000,
        minimum=1,
        help="Changes without a schema: how many row messages of the table to look at, beside "
        "those at the ends of files and topic partitions.",
    ),
)

MODE_OPTIONS = (
    Option(
        name="mode",
        type="choice",
        choices=("PERMISSIVE", "DROPMALFORMED", "FAILFAST"),
        default="PERMISSIVE",
        help="A message or row that cannot be decoded: a row that says so in `_corrupt_record` "
        "(an error where the schema lacks that column), none, or an error.",
    ),
    Option(
        name="incompleteRows",
        type="choice",
        choices=("fail", "emit", "corrupt"),
        default="fail",
        help="Changes: an insert or update whose message held only part of the row. `fail`: "
        "an error. `emit`: NULLs, and the names in `_absent`. `corrupt`: a bad row.",
    ),
    Option(
        name="onSchemaChange",
        type="choice",
        choices=("fail", "rescue", "ignore", "corrupt"),
        help="Changes: a value that its column's type cannot hold, a column that an inferred "
        "schema lacks, or in a stream DDL that adds, drops or renames columns beside the schema. "
        "`fail` (default for values and DDL): an error. `rescue` (default for columns): into "
        "`_rescued`. `ignore`: left out or NULL, and counted. `corrupt`: a bad row.",
    ),
    Option(
        name="ignoreColumns",
        type="list",
        default=(),
        help="Changes in a stream: columns of the table that DDL may add, drop or rename although "
        "the schema lacks or declares them; `*` is all.",
    ),
    Option(
        name="onTruncate",
        type="choice",
        choices=("fail", "row", "ignore", "corrupt"),
        default="fail",
        help="Changes: the table is truncated or dropped, also with its database or among several "
        "tables. `fail`: an error. `row`: a row with `_change_type` `truncate`. `ignore`: nothing, "
        "and counted. `corrupt`: a bad row.",
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
        help="ENUM and SET columns of an inferred schema: names where the wire has them and "
        "else numbers, always names, or always numbers.",
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
        help="Folder for the table schemas found in messages, for formats whose rows "
        "lack their types: for the tasks of a stream and for its restarts. One for each source.",
    ),
    Option(
        name="onMissingSchema",
        type="choice",
        choices=("wait", "corrupt", "fail", "raw"),
        help="A row whose table schema is neither known nor found around it. `wait` (default in "
        "streams): go on looking for `schemaWaitTimeout`, then fail; nothing is lost. `corrupt` "
        "(default elsewhere): a bad row. `fail`: an error. `raw` (debezium's default elsewhere): "
        "its values as the JSON has them.",
    ),
    Option(
        name="schemaWaitTimeout",
        type="duration",
        default=timedelta(seconds=300),
        help="How long `onMissingSchema=wait` waits for a schema to come.",
    ),
    Option(
        name="schemaSearchMessages",
        type="int",
        default=1_000_000,
        minimum=0,
        help="Topics: in how many offsets before and behind a task's own, of each partition, a "
        "missing schema is looked for.",
    ),
)

DUPLICATE_OPTIONS = (
    Option(
        name="deduplicate",
        type="choice",
        choices=("none", "watermark"),
        default="none",
        help="Topics: `watermark` drops row changes that were sent before: those with a commit_ts "
        "below the watermarks of all partitions where the batch begins.",
    ),
    Option(
        name="watermarkLookback",
        type="int",
        default=100_000,
        minimum=1,
        help="Topics: in how many offsets before a batch `deduplicate` looks for a partition's "
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
