"""Options of file inputs, for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.filters import parse_table_name
from cdcfmt_core.options import Option
from cdcfmt_core.texts import parse_json
from cdcfmt_files.sources.reader import ReadParameters

STORAGE_OPTIONS = Option(
    name="storageOptions",
    hidden=True,
    help="JSON object of options for the file system (fsspec), such as credentials.",
)

_ONE_LINE = "a message is one line; lineSep sets another separator"
_COMMIT_TIMES = "select events by startingSourceTime and endingSourceTime"
_NO_CSV = "messages are lines of JSON, or binary, and not CSV"
_ALL_CHANGES = "the input holds changes; set table to read those of one table as rows"
_CLIENT = "settings of Kafka's client begin with kafka., as in kafka.bootstrap.servers"
_REGISTRY = "schema.registry.url is the address of the schema registry"
_REGISTRY_CLIENT = "settings of its client begin with schema.registry., as in schema.registry.url"
_READ_BY = "protocol names the format of the messages, and schema.registry.url gives their schemas"
_OFFSETS = "kafkaConsumer.pollTimeoutMs is how long brokers are asked for offsets"
FORMATS_OWN: Mapping[str, str] = {
    **dict.fromkeys(("encoding", "charset"), "each format has its own, JSON is UTF-8"),
    **dict.fromkeys(("dateformat", "timestampformat"), "the format defines dates and times"),
    "format": "protocol names the format of the messages",
}
"""Properties that the format determines, and what to do instead of setting them."""
_OTHER_READERS = {
    **FORMATS_OWN,
    "auto.offset.reset": "set startingOffsets to earliest or latest",
    "badrecordspath": "mode=PERMISSIVE keeps bad rows, with _corrupt_record",
    "basepath": "folder names do not become columns; read _source.path",
    **dict.fromkeys(("bootstrap.servers", "bootstrapservers", "brokers"), _CLIENT),
    **dict.fromkeys(("basic.auth.credentials.source", "basic.auth.user.info"), _REGISTRY_CLIENT),
    "cleansource": "files stay where they are",
    **dict.fromkeys(("group.id", "sasl.jaas.config", "sasl.mechanism", "sasl.password"), _CLIENT),
    **dict.fromkeys(("sasl.username", "security.protocol", "ssl.ca.location"), _CLIENT),
    "columnnameofcorruptrecord": "the column is _corrupt_record",
    "compression": "it is that of the end of the file's name: .gz, .zst, .bz2",
    "fetchoffset.numretries": _OFFSETS,
    "fetchoffset.retryintervalms": _OFFSETS,
    **dict.fromkeys(("delimiter", "escape", "header", "quote", "sep"), _NO_CSV),
    **dict.fromkeys(("endingversion", "startingversion"), _COMMIT_TIMES),
    **dict.fromkeys(("ignorechanges", "ignoredeletes", "skipchangecommits"), _ALL_CHANGES),
    "ignorecorruptfiles": "a file that cannot be read is an error",
    "ignoremissingfiles": "a missing file is an error: restore it, or list the input again",
    "inferschema": "columns of a table are inferred unless you give a schema",
    "latestfirst": "a stream reads files in order of modification time",
    "modifiedafter": _COMMIT_TIMES,
    "modifiedbefore": _COMMIT_TIMES,
    "multiline": _ONE_LINE,
    **dict.fromkeys(("readchangedata", "readchangefeed"), _ALL_CHANGES),
    "recursivefilelookup": "a folder is read with its subfolders",
    **dict.fromkeys(("mergeschema", "rescueddatacolumn"), "see _rescued (onSchemaChange)"),
    "samplingratio": "inferSampleMessages is the number of messages to sample",
    **dict.fromkeys(("timestampasof", "versionasof"), _COMMIT_TIMES),
    **dict.fromkeys(("registry", "registry.url", "registryurl", "schema.registry"), _REGISTRY),
    **dict.fromkeys(("schema-registry-url", "schema_registry_url", "schemaregistry"), _REGISTRY),
    "schemaregistryurl": _REGISTRY,
    **dict.fromkeys(("avroschema", "key.deserializer", "value.deserializer"), _READ_BY),
    **dict.fromkeys(("pk", "primarykey", "primarykeys"), "keyColumns names the key columns"),
    **dict.fromkeys(("since", "until"), _COMMIT_TIMES),
    "topic": "name topics to read by subscribe, subscribePattern or assign",
    "wholetext": _ONE_LINE,
}
"""Options of other sources and of clients, in lower case, and what to do instead.  Texts spell
options as Spark's users do; the command line translates those that it has."""

SOURCE_OPTIONS = (
    Option(
        name="path",
        help="File, directory (read with its subdirectories) or glob; `load(path)` sets it.",
    ),
    Option(name="paths", type="list", default=(), help="Several paths; `load([...])` sets it."),
    Option(
        name="maxPartitionBytes",
        type="bytes",
        default=128 << 20,
        minimum=1,
        help="Maximum bytes of files per Spark partition; larger files are split at line ends, "
        "into partitions of equal size.",
    ),
    Option(
        name="maxFilesPerTrigger",
        type="int",
        default=1000,
        minimum=1,
        help="Streams: maximum number of files per micro-batch.",
    ),
    Option(
        name="maxBytesPerTrigger",
        type="bytes",
        minimum=1,
        help="Streams: maximum stored bytes of the files per micro-batch, together with "
        "`maxFilesPerTrigger`; a larger file is a micro-batch alone.",
    ),
    Option(
        name="maxFileAge",
        type="duration",
        default=timedelta(days=1),
        help="Streams: how much older than the newest file read so far a new file may be.",
    ),
    Option(
        name="failOnDataLoss",
        type="bool",
        default=True,
        help="Streams: a file older than `maxFileAge`, or changed after it was read: an error; "
        "`false`: a warning, and it is not read.",
    ),
)
"""Which files to read, and how Spark splits them into batches and tasks."""

LINE_OPTIONS = (
    Option(
        name="pathGlobFilter",
        help="Only files whose name matches this glob.",
        instead=_OTHER_READERS,
    ),
    Option(
        name="lineFormat",
        type="choice",
        choices=("auto", "value", "message"),
        default="auto",
        help="Content of a line: a message's `value`, or a whole `message` as JSON with base64 "
        "`key` and `value`, as Spark writes a Kafka DataFrame to JSON; `auto`: decide per line.",
    ),
    Option(name="lineSep", help="Line separator; by default `\\n` or `\\r\\n`."),
)
"""Which files have messages, and how."""

FILE_OPTIONS = (
    *LINE_OPTIONS,
    Option(
        name="scanSchemas",
        type="bool",
        default=True,
        help="First scan the whole input of a batch: for table schemas, if a format's rows may "
        "lack types (debezium, simple); for DDL statements, if rows have incomplete types "
        "(TiCDC's canal-json, open-protocol). `false` saves this pass.",
    ),
    STORAGE_OPTIONS,
)


def parse_storage_options(text: str | None) -> dict[str, Any]:
    """The JSON object of ``storageOptions``; the error never shows the text."""
    if text is None:
        return {}
    try:
        options = parse_json(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise OptionError("option storageOptions: the given text is not a JSON object")
    return options


@attrs.frozen
class InputOptions:
    """Validated options by declared name, some of which only some commands have."""

    # storageOptions may hold secrets.
    values: Mapping[str, Any] = attrs.field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def table(self) -> tuple[str, ...] | None:
        """The parts of the name in the option ``table``."""
        table = self.values.get("table")
        return None if table is None else parse_table_name(table)

    @property
    def storage_options(self) -> dict[str, Any]:
        """Options of the file system."""
        return parse_storage_options(self["storageOptions"])


def read_parameters(options: Mapping[str, Any]) -> ReadParameters:
    """How these options read files."""
    separator = options["lineSep"]
    return {
        "storage_options": parse_storage_options(options["storageOptions"]),
        "line_separator": None if separator is None else separator.encode(),
        "max_message_bytes": options["maxMessageBytes"],
        "line_format": options["lineFormat"],
        "protocol": options["protocol"],
    }
