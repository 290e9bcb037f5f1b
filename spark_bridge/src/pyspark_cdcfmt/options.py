"""Validated options of a read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import attrs

from cdcfmt_core import Option, Registry, default_registry
from cdcfmt_core.codec import AUTO, format_options
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import OptionError
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import AGO, check_once, split_by_owner, validate
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.writer_schemas import registry_options
from cdcfmt_files import FILES
from cdcfmt_files.sources.options import InputOptions
from cdcfmt_toolkit.filesystem import is_relative
from cdcfmt_toolkit.inputs import Input
from cdcfmt_toolkit.topic_input import open_input
from cdcfmt_toolkit.topics.options import TOPIC_OPTIONS
from cdcfmt_toolkit.transport_opening import choose_transport
from pyspark_cdcfmt.option_groups import OPTION_GROUPS, TYPE_OPTIONS, bridge_options

_OF_DATAFRAMES = tuple(
    option
    for group in ("Messages", "Shape", "Bad input", "Types")
    for option in OPTION_GROUPS[group]
    if option.name not in ("includeSource", "inferSampleMessages", "requireTables")
)

# They select columns.
_OF_EVENTS = ("imageFormat", "includeColumns", "includeHeaders")
_OF_CHANGES = ("includeSource", "metadataPrefix")

_OF_DATAFRAMES_TOO = ("storageOptions", "includeHeaders", "schemaStore", "onMissingSchema")


def dataframe_options() -> Iterable[Option]:
    """The bridge's options, except those that select the input."""
    for option in bridge_options():
        if option in _OF_DATAFRAMES or option.name in _OF_DATAFRAMES_TOO:
            yield option


def message_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The subset of a source's options that :func:`decode` accepts."""
    of_input = {option.name.lower() for option in bridge_options()}
    transports = default_registry().transports().values()
    of_input |= {option.name.lower() for spec in transports for option in spec.options}
    of_input -= {option.name.lower() for option in dataframe_options()}
    prefixes = tuple(spec.prefix for spec in transports)
    return {
        name: value
        for name, value in options.items()
        if name.lower() not in of_input and not name.lower().startswith(prefixes)
    }


# Spark adds these to the user's options, for catalog tables, views and queries.
_SPARKS_OWN = frozenset(
    {"provider", "owner", "location", "external", "comment", "checkpointlocation", "collation"}
    | {"is_managed_location", "table_type", "queryname"}
)
_SPARKS_PREFIXES = ("option.", "spark.", "__")

_NO_INPUT = (
    "the cdc source has no path and no topic: give load(path), or the options "
    "kafka.bootstrap.servers and subscribe (or subscribePattern, assign). In SQL, "
    "Spark passes the options of a CREATE TABLE ... USING cdc to the source only while it creates "
    "the table; use "
    "CREATE TEMPORARY VIEW ... USING cdc OPTIONS (path '...'), or SELECT ... FROM t WITH (...)"
)


@attrs.frozen
class ReadOptions(InputOptions):
    """Validated options.

    :ivar values: the bridge's options by declared name.
    :ivar codec: the formats' options.
    :ivar input: the files or topics; None if the options select none.
    :ivar transport: the transport's title.
    :ivar relative: the options with times such as ``10 minutes ago``.
    """

    codec: Mapping[str, Any]
    input: Input | None = None
    transport: str = ""
    streaming: bool = False
    relative: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def case_sensitive(self) -> bool:
        """Whether column names match case-sensitively."""
        return is_case_sensitive(self["caseSensitive"])

    @property
    def splits_keys(self) -> bool:
        """Whether an update of the key becomes a delete and an insert."""
        return bool(self["splitKeyUpdates"]) or self["images"] == "after"

    def require_input(self) -> Input:
        """The input.

        :raises OptionError: unless the options name files or topics.
        """
        if self.input is None:
            raise OptionError(_NO_INPUT)
        if self["deduplicate"] != "none":
            self.input.check_duplicates()
        return self.input

    def in_stream(self) -> ReadOptions:
        """The same options for a stream, where formats always need their schemas.

        :raises OptionError: for a time such as ``10 minutes ago``.
        """
        self.check_restarts()
        codec = _with_policy(self.codec, self["onMissingSchema"] or "wait")
        return attrs.evolve(self, codec=codec, streaming=True)

    def check_restarts(self) -> None:
        """:raises OptionError: for a time that differs at each restart of a stream."""
        for name, text in self.relative.items():
            raise OptionError(
                f"option {name}: {text!r} is another time after a restart of the stream, which "
                f"would skip what came before: set {self[name].isoformat(' ', 'seconds')}"
            )

    def event_filter(self) -> EventFilter:
        """The filter for the events to decode, from the options alone."""
        kinds = None if self.table is None else frozenset({"row", "ddl", "corrupt"})
        return EventFilter.of(self.values, table=self.table, kinds=kinds)


def _with_policy(codec: Mapping[str, Any], policy: str | None) -> Mapping[str, Any]:
    """The formats' options with ``onMissingSchema``, which the bridge shares with them."""
    if "onMissingSchema" not in codec or policy is None:
        return codec
    # On a failure the reader searches for the schema.
    return {**codec, "onMissingSchema": "raw" if policy == "raw" else "fail"}


_OF_STREAMS = frozenset(
    {"maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "schemawaittimeout"}
    | {"maxfilespertrigger", "maxbytespertrigger", "maxfileage"}
)


def is_of_stream(given: Mapping[str, Any]) -> bool:
    """Whether any option or value has a meaning only in streams."""
    lower = {name.lower(): value for name, value in given.items()}
    waits = str(lower.get("onmissingschema")).strip().lower() == "wait"
    return waits or not _OF_STREAMS.isdisjoint(lower)


def is_sparks_own(name: str) -> bool:
    """Whether an option, in lower case, is one that Spark adds to the user's."""
    return name in _SPARKS_OWN or name.startswith(_SPARKS_PREFIXES)


def other_names(given: Iterable[str], *tables: Iterable[Option]) -> list[str]:
    """The given names that neither a table nor Spark has, in lower case."""
    names = {option.name.lower() for table in tables for option in table}
    return [key for key in map(str.lower, given) if key not in names and not is_sparks_own(key)]


def check_place(option: str, path: str | None) -> None:
    """:raises OptionError: for a relative path to write to over Spark Connect."""
    is_temporary = Path.cwd().name == os.environ.get("SPARK_JOB_ARTIFACT_UUID")
    if is_temporary and path is not None and is_relative(path):
        raise OptionError(
            f"option {option}: {path} is relative, and over Spark Connect the working folder is a "
            "temporary one, which Spark removes with the session: give an absolute path or a URL"
        )


def check_type_options(given: Iterable[str], why: str) -> None:
    """:raises OptionError: for an option of type inference in a read without inference."""
    names = {name.lower() for name in given}
    useless = [option.name for option in TYPE_OPTIONS if option.name.lower() in names]
    if useless:
        raise OptionError(
            f"{', '.join(useless)} would have no effect, as {why}: leave it out, and declare the "
            "type that you want in the schema of a table's changes"
        )


def parse_options(
    given: Mapping[str, Any], registry: Registry | None = None, *, of_dataframe: bool = False
) -> ReadOptions:
    """Validate options as Spark passes them: keys in lower case, values as text.

    :param of_dataframe: the messages are in a DataFrame: options of the input are errors; keys
        may have any case, and values any type.
    :raises OptionError: for an option that neither the bridge nor the chosen format (any
        installed one under ``protocol=auto``) declares, and for invalid values.
    """
    registry = registry or default_registry()
    check_once(given)
    given = {name.lower(): value for name, value in given.items()}
    owner = "decode" if of_dataframe else "the cdc source"
    own = [*(dataframe_options() if of_dataframe else bridge_options())]
    own += registry_options(given, registry)
    codecs = registry.codecs_of(str(given.get("protocol", AUTO)))
    of_codecs = [option for codec in codecs for option in codec.options]
    chosen = None
    if not of_dataframe:
        chosen = choose_transport(other_names(given, own, of_codecs), registry)
    transport = chosen or FILES
    if chosen is not None:
        own += chosen.options

    def refuse(name: str) -> None:
        of_transports = (spec.options for spec in registry.transports().values())
        for option in chain(bridge_options(), *of_transports):
            if option.name.lower() == name:
                if chosen is not None:
                    raise OptionError(f"option {option.name} is not for {chosen.title}")
                raise OptionError(
                    f'option {option.name} is of format("cdc"); {owner} has its messages from the '
                    "DataFrame"
                )

    bridge, codec, client = split_by_owner(
        given,
        own,
        of_codecs,
        owner=owner,
        prefix=None if chosen is None else chosen.prefix,
        ignored=lambda name: not of_dataframe and is_sparks_own(name),
        refuse=refuse,
    )
    values = validate(bridge, own, owner=owner)
    _check_transport(transport, bridge)
    has_input = chosen is not None or values.get("path") or values.get("paths")
    options = ReadOptions(
        values,
        _with_policy(format_options(codecs, codec), values["onMissingSchema"]),
        open_input(transport, values, client) if has_input else None,
        transport.title if has_input else "",
        relative={
            option.name: str(bridge[option.name])
            for option in own
            if option.type == "time" and AGO.fullmatch(str(bridge.get(option.name, "")).strip())
        },
    )
    if options.table is None:
        check_type_options(given, "events hold values as they are")
    elif of_dataframe:
        check_type_options(given, "the types are those of schema")
    check_place("schemaStore", options["schemaStore"])
    # Fail here: only tasks open the type map, the registry and the format otherwise.  It connects
    # to nothing.
    MessageDecoder(values, options.codec, EventFilter(), registry=registry)
    options.event_filter().check()
    _check_shape(options, own)
    return options


def _check_transport(transport: TransportSpec, given: Mapping[str, Any]) -> None:
    """:raises OptionError: for options that only files have, or only topics."""
    own = {option.name for option in transport.options}
    for option in (*FILES.options, *TOPIC_OPTIONS):
        if not given.get(option.name) or option.name in own:
            continue
        if option.name in FILES.chosen_by:
            raise OptionError(
                f"the cdc source has both a path and options of {transport.title}: read each one "
                "separately, and union the results"
            )
        owner = "files" if option in FILES.options else "topics, and none is given"
        raise OptionError(f"option {option.name} is for {owner}")


def _check_shape(options: ReadOptions, declared: Iterable[Option]) -> None:
    """:raises OptionError: for options of the other shape (events or changes)."""
    useless = _OF_CHANGES if options.table is None else _OF_EVENTS
    for option in declared:
        if option.name in useless and options[option.name] != option.default:
            raise OptionError(
                f"option {option.name} is for the changes of a table; set the option table"
                if options.table is None
                else f"option {option.name} is for events; leave the option table out"
            )
    if options.table is not None and options["images"] == "none":
        raise OptionError("option images: none is for events; leave the option table out")


SPARKS_SWITCH = "spark.sql.caseSensitive"


def is_case_sensitive(option: bool | None) -> bool:
    """The option ``caseSensitive``, else Spark's setting.

    Spark shows the setting only to tasks; on the driver it counts as off.
    """
    if option is not None:
        return option
    from pyspark import TaskContext

    task = TaskContext.get()
    known = None if task is None else task.getLocalProperty(SPARKS_SWITCH)
    return known is not None and known.lower() == "true"
