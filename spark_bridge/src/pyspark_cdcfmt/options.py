"""The options of ``format("cdc")``: one table, from which validation and docs are made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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

STORAGE_OPTIONS = Option(
    name="storageOptions",
    hidden=True,
    help="JSON object of options for the file system (fsspec), such as credentials.",
)

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
        name="pathGlobFilter",
        help="Only files whose name matches this glob.",
    ),
    Option(
        name="lineFormat",
        type="choice",
        choices=("auto", "value", "message"),
        default="auto",
        help="What a line is: a message's `value`, or a whole `message` as JSON with base64 "
        "`key` and `value`, as Spark writes a Kafka DataFrame to JSON; `auto` tells line by line.",
    ),
    Option(
        name="lineSep",
        help="Separator of lines; by default `\\n` or `\\r\\n`.",
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
        name="scanSchemas",
        type="bool",
        default=True,
        help="Look through the whole input for table schemas first, where a format's rows may "
        "lack their types (debezium); `false` spares that pass.",
    ),
    STORAGE_OPTIONS,
)

SHAPE_OPTIONS = (
    Option(
        name="table",
        help="`database.table` or `database.schema.table`: the typed changes of that table "
        "instead of events. A part with a dot or blank stands in backticks; exact case.",
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
        name="inferSampleMessages",
        type="int",
        default=1000,
        minimum=1,
        help="Changes without a schema: how many row messages of the table to look at.",
    ),
)

MODE_OPTIONS = (
    Option(
        name="mode",
        type="choice",
        choices=("PERMISSIVE", "DROPMALFORMED", "FAILFAST"),
        default="PERMISSIVE",
        help="A bad message or row: a row that says so in `_corrupt_record`, none, or an error.",
    ),
    Option(
        name="incompleteRows",
        type="choice",
        choices=("fail", "emit"),
        default="fail",
        help="Changes: an insert or update whose message held only part of the row. `fail`: "
        "a bad row. `emit`: NULLs, and the names in `_absent`.",
    ),
    Option(
        name="onSchemaChange",
        type="choice",
        choices=("fail", "ignore", "rescue"),
        default="fail",
        help="Changes: a column that the schema lacks, or a value that its type cannot hold. "
        "`fail`: a bad row. `ignore`: left out or NULL, and counted. `rescue`: into `_rescued`.",
    ),
    Option(
        name="onTruncate",
        type="choice",
        choices=("fail", "ignore", "row"),
        default="fail",
        help="Changes: the table is truncated or dropped. `fail`: a bad row. `ignore`: "
        "nothing, and counted. `row`: a row with `_change_type` `truncate`.",
    ),
    Option(
        name="invalidValues",
        type="choice",
        choices=("null", "fail", "text"),
        default="null",
        help="Zero dates, NaN decimals and other values that the type cannot hold: NULL and "
        "counted, a bad row, or their text (in string columns).",
    ),
    Option(
        name="invalidText",
        type="choice",
        choices=("replace", "fail", "escape"),
        default="replace",
        help="Text with bytes that its charset cannot decode: U+FFFD and counted, a bad row, "
        "or `\\xHH`.",
    ),
)

TYPE_OPTIONS = (
    Option(
        name="timeAs",
        type="choice",
        choices=("string", "interval", "micros"),
        default="string",
        help="TIME columns: text as MySQL prints it, day-time interval, or microseconds.",
    ),
    Option(
        name="enumAs",
        type="choice",
        choices=("auto", "name", "index"),
        default="auto",
        help="ENUM and SET columns: names where the wire tells them and else numbers, always "
        "names, or always numbers.",
    ),
    Option(
        name="jsonAs",
        type="choice",
        choices=("variant", "string"),
        default="variant",
        help="JSON columns.",
    ),
)

OPTION_GROUPS = {
    "Input": INPUT_OPTIONS,
    "Kafka": KAFKA_OPTIONS,
    "Messages": DECODING_OPTIONS,
    "Shape": SHAPE_OPTIONS,
    "Bad input": MODE_OPTIONS,
    "Types": TYPE_OPTIONS,
}

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

    values: Mapping[str, Any]
    codec: Mapping[str, Any]
    kafka: KafkaOptions | None = None

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def table(self) -> tuple[str, ...] | None:
        return parse_table_name(self["table"]) if self["table"] is not None else None

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

    @property
    def storage_options(self) -> dict[str, Any]:
        """Options of the file system."""
        return parse_storage_options(self["storageOptions"])

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


def parse_storage_options(text: str | None) -> dict[str, Any]:
    """The JSON object in ``storageOptions``; the error never shows the text."""
    if text is None:
        return {}
    try:
        options = json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise OptionError("option storageOptions: the given text is not a JSON object")
    return options


def is_sparks_own(name: str) -> bool:
    """Whether an option, in lower case, is one that Spark adds to the user's."""
    return name in _SPARKS_OWN or name.startswith(_SPARKS_PREFIXES)


def bridge_options() -> Iterable[Option]:
    """Every option of the bridge itself."""
    return (option for group in OPTION_GROUPS.values() for option in group)


def parse_options(given: Mapping[str, str], registry: Registry | None = None) -> ReadOptions:
    """Options as Spark hands them over: keys in lower case, values as text.

    :raises OptionError: for an option that neither the bridge nor the chosen format (any
        installed one under ``protocol=auto``) declares, and for values they cannot have.
    """
    registry = registry or default_registry()
    own = {option.name.lower(): option for option in bridge_options()}
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
        key = name.lower()
        if key.startswith(CLIENT_PREFIX):
            client[key.removeprefix(CLIENT_PREFIX)] = str(value)
        elif key in own:
            bridge[key] = value
        elif key in of_codecs:
            codec[key] = value
        elif not is_sparks_own(key):
            known = [option.name for option in [*own.values(), *of_codecs.values()]]
            raise unknown_option(name, known, owner="the cdc source")
    values = validate(bridge, own.values(), owner="the cdc source")
    from_kafka = is_kafka(values, client)
    for option in KAFKA_OPTIONS:
        if option.name.lower() in bridge and not from_kafka and option.name != "includeHeaders":
            raise OptionError(
                f"option {option.name} is for Kafka, and none of subscribe, subscribePattern and "
                "assign is given"
            )
    options = ReadOptions(
        values,
        validate(codec, of_codecs.values(), owner="the cdc source"),
        parse_kafka_options(values, client) if from_kafka else None,
    )
    if options.table is not None and options["images"] == "none":
        raise OptionError("option images: none is for events; leave the option table out")
    return options
