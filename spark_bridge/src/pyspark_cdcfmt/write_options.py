"""The options of writing: the source of validation and docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from cdcfmt_core import Option, Registry, default_registry
from cdcfmt_core.encoding import ENCODING_OPTIONS
from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import split_by_owner, validate
from cdcfmt_core.schema_registry import TOPIC, SchemaId
from cdcfmt_core.texts import parse_json
from cdcfmt_core.transport import Sink, TransportSpec
from cdcfmt_core.writer_schemas import registry_options
from cdcfmt_files.sources.compression import COMPRESSIONS
from cdcfmt_files.sources.options import FORMATS_OWN, STORAGE_OPTIONS, InputOptions
from cdcfmt_toolkit.avro_output import SchemaKey
from cdcfmt_toolkit.transport_opening import choose_transport, open_sink
from pyspark_cdcfmt.options import check_place, is_sparks_own, other_names

OWNER = "writing cdc"

FILE_OPTIONS = (
    Option(name="path", help="Folder to write files to; `save(path)` sets it."),
    Option(
        name="lineFormat",
        type="choice",
        choices=("auto", "value", "message"),
        default="auto",
        help="Content of a line: a whole `message` as JSON with base64 `key` and `value`, or only "
        "its `value`; `auto`: the value if it is a JSON object and the message has no key.",
    ),
    Option(
        name="compression",
        type="choice",
        choices=COMPRESSIONS,
        default="none",
        help="Compression of the files.",
    ),
    Option(
        name="maxRecordsPerFile",
        type="int",
        default=0,
        minimum=0,
        help="Maximum number of messages per file; 0: one file per task.",
    ),
    Option(
        name="ifExists",
        type="choice",
        choices=("error", "ignore"),
        help="With mode append, if the folder has files: raise an error, or write nothing.",
        instead={
            **FORMATS_OWN,
            "mode": "call .mode(...) of the writer",
            "outputmode": "call .outputMode(...) of the writer",
            "codec": "set compression",
        },
    ),
    Option(
        name="txnAppId",
        help="With `txnVersion`: a name for the writer. Writes with the same name and version "
        "happen once, as in Delta; for foreachBatch.",
    ),
    Option(
        name="txnVersion",
        type="int",
        minimum=0,
        help="With `txnAppId`: the number of this write, such as foreachBatch's batch id.",
    ),
    STORAGE_OPTIONS,
)

TOPIC_OPTIONS = (
    Option(
        name="singleTask",
        type="bool",
        default=False,
        help="All rows come from one task (`coalesce(1)`), so that DDL is written in its place; "
        "a second task with rows fails.",
    ),
)

ROW_OPTIONS = (
    Option(
        name="table",
        help="`database.table` or `database.schema.table`: the rows are changes of that table, "
        "not events. Put a part with a dot or blank in backticks.",
    ),
    Option(
        name="keyColumns",
        type="list",
        help="Columns that identify a row. Required with `table`; for events, instead of their "
        "`key_columns`.",
    ),
    Option(
        name="typesFrom",
        type="choice",
        choices=("columns", "values"),
        default="columns",
        help="Events: origin of column types: the source types in `columns`, or the values "
        "themselves, for rows that were not read by a cdc source.",
    ),
    Option(
        name="columnTypes",
        help="Changes: JSON object of columns' source types, such as "
        '`{"id": "bigint unsigned"}`, instead of the types of the DataFrame.',
    ),
    Option(
        name="typeMap",
        help="Type map of the source types, instead of that of the format that the rows were "
        "read from.",
    ),
    Option(
        name="metadataPrefix",
        default="_",
        help="Changes: prefix of the names of `_change_type` and similar columns, instead of `_`.",
    ),
    Option(
        name="ordered",
        type="bool",
        default=True,
        help="Fail if changes of one key are out of order within a task.",
    ),
)

OUTPUT_GROUPS = {
    "Files": FILE_OPTIONS,
    "Topics": TOPIC_OPTIONS,
    "Rows": ROW_OPTIONS,
    "Messages": ENCODING_OPTIONS,
}


@attrs.frozen
class WriteOptions(InputOptions):
    """Validated options.

    :ivar values: the bridge's options by declared name.
    :ivar codec: the format's options.
    :ivar sink: the topic; None for files.
    :ivar checkpoint: Spark's checkpointLocation of a stream.
    :ivar schema_ids: schemas that the driver has registered in a schema registry.
    """

    codec: Mapping[str, Any]
    sink: Sink | None = None
    checkpoint: str | None = None
    schema_ids: Mapping[SchemaKey, SchemaId] = attrs.field(factory=dict, repr=False)

    @property
    def column_types(self) -> dict[str, str]:
        """Source types by column.

        :raises OptionError: unless the option is a JSON object of texts.
        """
        text = self["columnTypes"]
        try:
            types = {} if text is None else parse_json(text)
        except ValueError:
            types = None
        if not isinstance(types, dict) or not all(isinstance(t, str) for t in types.values()):
            raise OptionError(
                'option columnTypes: not a JSON object such as {"id": "bigint unsigned"}'
            )
        return types


def output_options() -> Iterable[Option]:
    """Every option of writing, without those of formats and transports."""
    return (option for group in OUTPUT_GROUPS.values() for option in group)


def parse_write_options(
    given: Mapping[str, Any],
    registry: Registry | None = None,
    *,
    of_dataframe: bool = False,
) -> WriteOptions:
    """Validate options as Spark passes them.

    :param of_dataframe: for :func:`encode`, without the options of files.
    :raises OptionError: for an option that neither the bridge nor the format declares, for
        invalid values, and for a format without an encoder.
    """
    registry = registry or default_registry()
    protocol = next((given[name] for name in given if name.lower() == "protocol"), None)
    if protocol is None:
        written = (name for name, spec in registry.codecs().items() if spec.open_encoder)
        text = f"option protocol: name the format to write, one of {', '.join(sorted(written))}"
        if all(name == "path" or is_sparks_own(name) for name in map(str.lower, given)):
            text += (
                ". In SQL, Spark does not pass the options of a CREATE TABLE to writes: use "
                "INSERT INTO t WITH (path '...', protocol '...') SELECT ..."
            )
        raise OptionError(text)
    left_out = (*FILE_OPTIONS, *TOPIC_OPTIONS) if of_dataframe else ()
    own = [option for option in output_options() if option not in left_out]
    if of_dataframe:
        own.append(STORAGE_OPTIONS)
    own += registry_options(given, registry)
    of_codec = registry.get_codec(protocol).encode_options
    transport = None
    if not of_dataframe:
        transport = choose_transport(other_names(given, own, of_codec), registry, writing=True)
    if transport is not None:
        own += transport.sink_options
    bridge, codec, client = split_by_owner(
        given,
        own,
        of_codec,
        owner=OWNER,
        prefix=None if transport is None else transport.prefix,
        ignored=is_sparks_own,
    )
    values = validate(bridge, own, owner=OWNER)
    if TOPIC in values and values[TOPIC] is None:
        values[TOPIC] = values.get("topic")
    options = WriteOptions(
        values,
        validate(codec, of_codec, owner=OWNER),
        None if transport is None else open_sink(transport, values, client),
        next((str(given[name]) for name in given if name.lower() == "checkpointlocation"), None),
    )
    check_place("path", values.get("path"))
    check_place("checkpointLocation", options.checkpoint)
    _check_together(options, bridge.keys(), transport)
    return options


def _check_together(
    options: WriteOptions, given: Iterable[str], transport: TransportSpec | None
) -> None:
    """:raises OptionError: for options that exclude each other."""
    names = set(given)
    if transport is not None:
        for option in FILE_OPTIONS:
            if option.name in names and option is not STORAGE_OPTIONS:
                raise OptionError(f"option {option.name} is for files, not for {transport.title}")
    elif "singleTask" in names:
        raise OptionError("option singleTask is for topics; leave it out for files")
    if ("txnAppId" in names) != ("txnVersion" in names):
        raise OptionError("options txnAppId and txnVersion go together")
    useless = ("columnTypes", "metadataPrefix") if options.table is None else ("typesFrom",)
    for option in ROW_OPTIONS:
        if option.name in useless and options[option.name] != option.default:
            raise OptionError(
                f"option {option.name} goes with the option table"
                if options.table is None
                else f"option {option.name} is for events; leave the option table out"
            )
