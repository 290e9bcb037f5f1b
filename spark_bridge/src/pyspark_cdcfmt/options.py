"""The options of ``format("cdc")``: one table, from which validation and docs are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import attrs

from cdcfmt_core import Option, Registry, default_registry
from cdcfmt_core.decoding import AUTO, DECODING_OPTIONS
from cdcfmt_core.errors import OptionError
from cdcfmt_core.filters import EventFilter, parse_table_name
from cdcfmt_core.options import unknown_option, validate
from cdcfmt_core.sources.kafka import (
    CLIENT_PREFIX,
    KAFKA_OPTIONS,
    KafkaOptions,
    is_kafka,
    parse_kafka_options,
)
from cdcfmt_core.sources.options import FILE_OPTIONS, parse_storage_options
from pyspark_cdcfmt.rows.columns import is_case_sensitive

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
        "Kafka one for each topic partition.",
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
        help="Changes: the table is truncated or dropped. `fail`: an error. `row`: a row with "
        "`_change_type` `truncate`. `ignore`: nothing, and counted. `corrupt`: a bad row.",
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
        help="ENUM and SET columns of an inferred schema: names where the wire tells them and "
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
        help="Folder where table schemas are kept that the messages tell, for formats whose rows "
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
        help="Kafka: in how many offsets before and behind a task's own, of each partition, a "
        "missing schema is looked for.",
    ),
)

DUPLICATE_OPTIONS = (
    Option(
        name="deduplicate",
        type="choice",
        choices=("none", "watermark"),
        default="none",
        help="Kafka: `watermark` drops row changes that were sent before: those with a commit_ts "
        "below the watermarks of all partitions where the batch begins.",
    ),
    Option(
        name="watermarkLookback",
        type="int",
        default=100_000,
        minimum=1,
        help="Kafka: in how many offsets before a batch `deduplicate` looks for a partition's "
        "last watermark.",
    ),
)

OPTION_GROUPS = {
    "Input": INPUT_OPTIONS,
    "Kafka": KAFKA_OPTIONS,
    "Messages": DECODING_OPTIONS,
    "Schemas": SCHEMA_OPTIONS,
    "Duplicates": DUPLICATE_OPTIONS,
    "Shape": SHAPE_OPTIONS,
    "Bad input": MODE_OPTIONS,
    "Types": TYPE_OPTIONS,
}

_OF_DATAFRAMES = tuple(
    option
    for group in ("Messages", "Shape", "Bad input", "Types")
    for option in OPTION_GROUPS[group]
    if option.name not in ("includeSource", "inferSampleMessages", "requireTables")
)

_OF_DATAFRAMES_TOO = ("storageOptions", "includeHeaders", "schemaStore", "onMissingSchema")

# Spark adds these to what a user wrote: of catalog tables, views and queries.
_SPARKS_OWN = frozenset(
    {"provider", "owner", "location", "external", "comment", "checkpointlocation", "collation"}
    | {"is_managed_location", "table_type", "queryname"}
)
_SPARKS_PREFIXES = ("option.", "spark.", "__")


_NO_INPUT = (
    "the cdc source has no path and no topic: give load(path), or the options "
    "kafka.bootstrap.servers and subscribe (or subscribePattern, assign). For SQL, note that "
    "Spark hands the options of a CREATE TABLE ... USING cdc to the source only while it creates "
    "the table; use "
    "CREATE TEMPORARY VIEW ... USING cdc OPTIONS (path '...'), or SELECT ... FROM t WITH (...)"
)


@attrs.frozen
class ReadOptions:
    """Validated options: ``values`` are the bridge's by declared name, ``codec`` the formats'."""

    # storageOptions may hold secrets.
    values: Mapping[str, Any] = attrs.field(repr=False)
    codec: Mapping[str, Any]
    kafka: KafkaOptions | None = None
    streaming: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def table(self) -> tuple[str, ...] | None:
        return parse_table_name(self["table"]) if self["table"] is not None else None

    @property
    def case_sensitive(self) -> bool:
        """Whether names of columns match with case."""
        return is_case_sensitive(self["caseSensitive"])

    @property
    def splits_keys(self) -> bool:
        """Whether an update of the key is a delete and an insert."""
        return bool(self["splitKeyUpdates"]) or self["images"] == "after"

    @property
    def paths(self) -> list[str]:
        return ([self["path"]] if self["path"] else []) + list(self["paths"])

    def require_input(self) -> None:
        """OptionError unless there are either files or topics to read."""
        if self.paths and self.kafka is not None:
            raise OptionError(
                "the cdc source has both a path and options of Kafka: read one of them, and union"
            )
        if not self.paths and self.kafka is None:
            raise OptionError(_NO_INPUT)
        if self["deduplicate"] != "none":
            self._require_whole_topics()

    def _require_whole_topics(self) -> None:
        if self.kafka is None:
            raise OptionError(
                "option deduplicate: files do not tell which watermarks came before them; it is "
                "for Kafka"
            )
        if self.kafka.topics.assigned is not None:
            raise OptionError(
                "option deduplicate: duplicates are told by the watermarks of all partitions of "
                "a topic; use subscribe in place of assign"
            )

    @property
    def storage_options(self) -> dict[str, Any]:
        """Options of the file system; the error never shows the text."""
        return parse_storage_options(self["storageOptions"])

    def in_stream(self) -> ReadOptions:
        """The same for a stream, where formats never do without schemas by themselves."""
        codec = _with_policy(self.codec, self["onMissingSchema"] or "wait")
        return attrs.evolve(self, codec=codec, streaming=True)

    def event_filter(self) -> EventFilter:
        """What to decode, from the options alone."""
        return EventFilter(
            table=self.table,
            include_tables=self["includeTables"],
            exclude_tables=self["excludeTables"],
            starting_commit_ts=self["startingCommitTs"],
            ending_commit_ts=self["endingCommitTs"],
            kinds=None if self.table is None else frozenset({"row", "ddl", "corrupt"}),
        )


def _with_policy(codec: Mapping[str, Any], policy: str | None) -> Mapping[str, Any]:
    """The formats' options with what ``onMissingSchema``, which the bridge has too, says."""
    if "onMissingSchema" not in codec or policy is None:
        return codec
    # Whoever looks for schemas learns from the failure that one is missing.
    return {**codec, "onMissingSchema": "raw" if policy == "raw" else "fail"}


_OF_STREAMS = frozenset(
    {"maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "schemawaittimeout"}
    | {"maxfilespertrigger", "maxfileage"}
)


def is_of_stream(given: Mapping[str, Any]) -> bool:
    """Whether options are there that only mean something in a stream, or such a value."""
    lower = {name.lower(): value for name, value in given.items()}
    waits = str(lower.get("onmissingschema")).strip().lower() == "wait"
    return waits or not _OF_STREAMS.isdisjoint(lower)


def is_sparks_own(name: str) -> bool:
    """Whether an option, in lower case, is one that Spark adds to the user's."""
    return name in _SPARKS_OWN or name.startswith(_SPARKS_PREFIXES)


def bridge_options() -> Iterable[Option]:
    """Every option of the bridge itself."""
    return (option for group in OPTION_GROUPS.values() for option in group)


def dataframe_options() -> Iterable[Option]:
    """The bridge's options that do not say where messages come from."""
    for option in bridge_options():
        if option in _OF_DATAFRAMES or option.name in _OF_DATAFRAMES_TOO:
            yield option


def check_type_options(given: Iterable[str], why: str) -> None:
    """OptionError for an option that chooses between inferred types, where none are inferred."""
    names = {name.lower() for name in given}
    useless = [option.name for option in TYPE_OPTIONS if option.name.lower() in names]
    if useless:
        raise OptionError(
            f"{', '.join(useless)} would do nothing, as {why}: leave it out, and declare the type "
            "that you want in the schema of a table's changes"
        )


def parse_options(
    given: Mapping[str, Any], registry: Registry | None = None, *, of_dataframe: bool = False
) -> ReadOptions:
    """Options as Spark hands them over: keys in lower case, values as text.

    ``of_dataframe``: the messages are in a DataFrame, so options of the input are errors;
    keys may be in any case and values of their own types.

    :raises OptionError: for an option that neither the bridge nor the chosen format (any
        installed one under ``protocol=auto``) declares, and for values they cannot have.
    """
    registry = registry or default_registry()
    given = {name.lower(): value for name, value in given.items()}
    owner = "decode" if of_dataframe else "the cdc source"
    declared = dataframe_options() if of_dataframe else bridge_options()
    own = {option.name.lower(): option for option in declared}
    protocol = str(given.get("protocol", AUTO))
    if protocol.lower() == AUTO:
        codecs = list(registry.codecs().values())
    else:
        codecs = [registry.get_codec(protocol)]
    of_codecs = {option.name.lower(): option for codec in codecs for option in codec.options}

    bridge: dict[str, Any] = {}
    codec: dict[str, Any] = {}
    client: dict[str, str] = {}
    for name, value in given.items():
        if name.startswith(CLIENT_PREFIX) and not of_dataframe:
            client[name.removeprefix(CLIENT_PREFIX)] = str(value)
        elif name in own:
            bridge[name] = value
        elif name in of_codecs:
            codec[name] = value
        elif of_dataframe or not is_sparks_own(name):
            for option in bridge_options():
                if option.name.lower() == name:
                    raise OptionError(
                        f'option {option.name} is of format("cdc"); {owner} has its messages '
                        "from the DataFrame"
                    )
            known = [option.name for option in [*own.values(), *of_codecs.values()]]
            raise unknown_option(name, known, owner=owner)
    values = validate(bridge, own.values(), owner=owner)
    from_kafka = not of_dataframe and is_kafka(values, client)
    for option in KAFKA_OPTIONS:
        if option.name.lower() in bridge and not from_kafka and option.name != "includeHeaders":
            raise OptionError(
                f"option {option.name} is for Kafka, and none of subscribe, subscribePattern and "
                "assign is given"
            )
    options = ReadOptions(
        values,
        _with_policy(validate(codec, of_codecs.values(), owner=owner), values["onMissingSchema"]),
        parse_kafka_options(values, client) if from_kafka else None,
    )
    if options.table is None:
        check_type_options(given, "events hold values as they are")
    elif of_dataframe:
        check_type_options(given, "the types are those of schema")
    if options.table is not None and options["images"] == "none":
        raise OptionError("option images: none is for events; leave the option table out")
    return options
