"""A format: its :class:`CodecSpec`, and the context of its decoder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

import attrs

from cdcfmt_core.column_names import fold, spelled
from cdcfmt_core.encoder import Encoder, EncoderContext
from cdcfmt_core.errors import OptionError, join_names
from cdcfmt_core.events import Event, Kind, Message, TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.lazy import function_of
from cdcfmt_core.options import READING, WRITING, Option, Versioned, check_declared
from cdcfmt_core.schema_registry import MessageSchemas, WriterSchema
from cdcfmt_core.schemas.records import SchemaRecord, Statement
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import one_line, open_logger, warn_zoneless
from cdcfmt_core.types import LogicalType

logger = open_logger("cdcfmt_core")

AUTO = "auto"
"""The ``protocol`` for which each message's format is recognised."""

DEFAULT_MAX_MESSAGE_BYTES = 128 << 20
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.IGNORECASE)

Decode: TypeAlias = Callable[[Message], Iterable[Event]]
OpenEncoder: TypeAlias = Callable[[Mapping[str, Any], EncoderContext], Encoder]
ScanSchemas: TypeAlias = Callable[[Message], Iterable[SchemaRecord]]
ScanStatements: TypeAlias = Callable[[Message], Iterable[Statement]]
Explain: TypeAlias = Callable[[Message, Mapping[str, Any]], Iterable[tuple[str, Any]]]

_Found = TypeVar("_Found", SchemaRecord, Statement, SchemaRecord | Statement)


@attrs.frozen
class MarkedScan(Generic[_Found]):
    """A scan function (schemas or statements) that lets readers search blocks of a file for marks.

    - ``marks``: a value without any of these bytes has no table schemas; empty: every value may
      have one.  A mark that starts with a control character (a binary format) starts the value.
    - ``one_partition``: every partition of a topic has the same schemas, so reading the first
      one is enough.
    """

    scan: Callable[[Message], Iterable[_Found]]
    marks: tuple[bytes, ...] = ()
    one_partition: bool = False

    def __call__(self, message: Message) -> Iterable[_Found]:
        return self.scan(message)


@attrs.frozen
class Projection:
    """The wanted parts of row images; a decoder may skip all others.

    - ``columns``: the wanted columns, in addition to the key columns; None: all.
    - ``before_updates``: if false, an update's before image is wanted only where the key changes.
    - ``key_columns``: the key; empty: the key columns that the message names.

    Column names are as the user spells them: :meth:`key_of` and :meth:`wanted_of` match them.
    """

    columns: frozenset[str] | None = None
    before_updates: bool = True
    key_columns: tuple[str, ...] = ()
    case_sensitive: bool = True

    def key_of(self, columns: Sequence[str], of_wire: Sequence[str]) -> tuple[str, ...]:
        """The key columns in the table's spelling; ``of_wire`` if the table lacks one of them."""
        if not self.key_columns:
            return tuple(of_wire)
        given = spelled(self.key_columns, columns, case_sensitive=self.case_sensitive)
        return given if set(given) <= set(columns) else tuple(of_wire)

    def of(self, table: TableSchema) -> tuple[tuple[str, ...], frozenset[str]]:
        """The key columns of a table, and the set of its wanted columns."""
        names = table.column_names
        key = self.key_of(names, table.key_columns)
        wanted = self.wanted_of(names, key)
        return key, frozenset(names) if wanted is None else wanted

    def wanted_of(self, columns: Sequence[str], key: Iterable[str]) -> frozenset[str] | None:
        """The wanted columns of a table, including its key columns; None: all."""
        if self.columns is None:
            return None
        same = partial(fold, case_sensitive=self.case_sensitive)
        named = set(map(same, self.columns))
        return frozenset(name for name in columns if same(name) in named).union(key)


class ClaimChecks(Protocol):
    """The folder where the producer stored the messages that were too large; it can be pickled."""

    def read(self, location: object, limit: int) -> tuple[bytes | None, bytes]:
        """Key and value of a stored message.

        :param limit: maximum number of bytes of each.
        :raises DecodeError: if the message cannot be read.
        :raises SourceError: if the folder cannot be read.
        """


@attrs.define
class DecoderContext:
    """Services for a decoder, the same for every format.

    - ``resolve_type``: the type map in use.
    - ``schemas``: table schemas found before decoding; the decoder adds those it finds.
    - ``event_filter``, ``projection``: let a decoder skip unwanted rows and columns early.  The
      caller filters again, so a decoder may ignore both.
    - ``claim_checks``: the store of claim-check messages, or None.
    - ``writer_schemas``: those of framed messages; None if no registry and no store is given.
    - ``counts``: number of changes to values that are not errors, by a description.
    """

    resolve_type: Callable[[str], LogicalType]
    schemas: SchemaStore
    event_filter: EventFilter = attrs.field(factory=EventFilter)
    projection: Projection = attrs.field(factory=Projection)
    source_time_zone: tzinfo | None = None
    claim_checks: ClaimChecks | None = None
    writer_schemas: MessageSchemas | None = None
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    counts: Counter[str] = attrs.field(factory=Counter)
    on_zoneless: Callable[[str, str], None] = warn_zoneless

    @property
    def time_zone(self) -> tzinfo:
        """The source's zone, for wires whose timestamps have no zone. Defaults to UTC."""
        return self.source_time_zone or UTC

    def note_zoneless_timestamps(self, table: TableSchema) -> None:
        """Warn once per table with Timestamp columns, for wires whose timestamps have no zone."""
        if self.source_time_zone is None and table.has_timestamps:
            self.on_zoneless(one_line(table.database, 200), one_line(table.table, 200))


@attrs.frozen
class CodecSpec(Versioned):
    """A format: its name, its options and how to open it.

    Every function may be given as a path, ``"package.module:function"``, which is imported on the
    first call.

    ``open_decoder(options, context)`` gets validated options by declared name and returns a
    plain callable; ``open_encoder(options, context)`` gets those of ``encode_options`` and
    returns an :class:`Encoder`.  All state belongs to the returned objects.
    A decoder yields the events of one message in order, raises
    :class:`~cdcfmt_core.errors.DecodeError` if the whole message is undecodable, and
    yields :class:`~cdcfmt_core.events.Corrupt` for a single bad row.

    ``scan_schemas(options, context)`` is for formats whose rows may lack their column types: it
    returns a function that finds the table schemas in one message, and is fast for messages
    without any.  A batch reader scans its whole input with it before it decodes any row; a
    :class:`MarkedScan` saves most of that work.

    ``scan_statements(options, context)`` is for formats whose rows have incomplete types
    (``decimal``): it returns a function that finds the DDL statements in a message.  The decoder
    finds them by table in ``context.schemas.statements``.

    ``needs_schemas``: no row can be decoded without a table schema from ``scan_schemas``.

    ``explain(message, options)`` shows people the parts of one undecoded message (versions,
    lengths, frames, the envelope's fields) as pairs of name and value, in order; it may raise
    DecodeError after the parts it could read.  Not needed if a value is one JSON document.

    ``open_layouts(options)`` describes most row messages for a compiled reader, as data that the
    core passes on (cdcfmt-kernel's are in the toolkit); empty if these options rule that out.

    ``sniff(message)`` returns 0.0 (another format) to 1.0 (certainly this format).  It is cheap:
    it looks at the bytes and never parses a whole message.

    ``sniff_schema(schema)`` is for formats with framed messages: the same for the writer schema of
    a value (or of a key without value), called once per schema instead of ``sniff``.

    ``ddl_partitions``: whether DDL is written to all partitions or to the first only.

    ``type_map``: the name of the type map that resolves its source types, unless the user names
    another.

    ``package``: name and version of the package; the registry sets it.
    """

    name: str
    summary: str
    spec_url: str
    open_decoder: Callable[[Mapping[str, Any], DecoderContext], Decode] = attrs.field(
        converter=function_of
    )
    sniff: Callable[[Message], float] = attrs.field(converter=function_of)
    emits: frozenset[Kind]
    options: tuple[Option, ...] = ()
    type_map: str = attrs.field(kw_only=True)
    open_encoder: OpenEncoder | None = attrs.field(default=None, converter=function_of)
    encode_options: tuple[Option, ...] = ()
    ddl_partitions: Literal["all", "first"] = "all"
    scan_schemas: Callable[[Mapping[str, Any], DecoderContext], ScanSchemas] | None = attrs.field(
        default=None, converter=function_of
    )
    scan_statements: Callable[[Mapping[str, Any], DecoderContext], ScanStatements] | None = (
        attrs.field(default=None, converter=function_of)
    )
    needs_schemas: bool = False
    sniff_schema: Callable[[WriterSchema], float] | None = attrs.field(
        default=None, converter=function_of
    )
    explain: Explain | None = attrs.field(default=None, converter=function_of)
    open_layouts: Callable[[Mapping[str, Any]], Sequence[Any]] | None = attrs.field(
        default=None, converter=function_of
    )
    aliases: tuple[str, ...] = ()
    api_version: int = attrs.field(kw_only=True)
    package: str = attrs.field(default="", eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for invalid names, and for settings that contradict each other.

        :raises TypeError: for values of another type.
        """
        for name in ("name", "summary", "spec_url"):
            if not isinstance(text := getattr(self, name), str):
                raise TypeError(f"format {self.name}: {name} is {text!r}, not text")
        if self.open_decoder is None or self.sniff is None:
            raise TypeError(f"format {self.name}: open_decoder and sniff must be functions")
        if self.ddl_partitions not in ("all", "first"):
            raise ValueError(f"format {self.name}: ddl_partitions must be all or first")
        if isinstance(self.aliases, str) or not isinstance(self.emits, frozenset | set):
            raise TypeError(f"format {self.name}: aliases must be a tuple, emits a frozenset")
        for name in (self.name, *self.aliases):
            if _NAME.fullmatch(name) is None:
                raise ValueError(f"format {name!r}: use letters, digits and single dashes between")
            if name.lower() == AUTO:
                raise ValueError(f"format {name!r}: the name is taken: it recognises formats")
        if unknown := self.emits - set(get_args(Kind)):
            raise ValueError(f"format {self.name}: emits unknown kinds: {join_names(unknown)}")
        if self.needs_schemas and self.scan_schemas is None:
            raise ValueError(f"format {self.name}: needs_schemas without scan_schemas to find them")
        for options, taken in ((self.options, READING), (self.encode_options, WRITING)):
            check_declared(options, f"format {self.name}", taken)

    def own_options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """This format's options among those of several (:func:`format_options`)."""
        names = [option.name for option in self.options]
        return {name: values.get(f"{self.name}.{name}", values[name]) for name in names}


def events_of(returned: Any) -> list[Event]:
    """The events that a decoder returned.

    :raises TypeError: if they are not a list or generator.
    """
    if not isinstance(returned, Iterable):
        raise TypeError(f"it returned {type(returned).__name__}, not a list of events")
    return list(returned)


def format_options(codecs: Iterable[CodecSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of several formats by declared name: parsed values or defaults.

    A name that formats declare differently also has an entry ``format.name`` for each of them:
    the given value if that format accepts it, else its default.

    :raises OptionError: for a value that no format accepts.
    """
    given = {name.lower(): value for name, value in given.items()}
    declared: dict[str, list[tuple[str, Option]]] = {}
    for codec in codecs:
        for option in codec.options:
            declared.setdefault(option.name.lower(), []).append((codec.name, option))
    values: dict[str, Any] = {}
    for name, options in declared.items():
        refusals = []
        differ = len({attrs.evolve(option, help="") for _, option in options}) > 1
        for format_, option in options:
            value = option.default
            if name in given:
                try:
                    value = option.parse(given[name])
                except OptionError as error:
                    refusals.append(error)
            values[option.name] = value
            if differ:
                values[f"{format_}.{option.name}"] = value
        if len(refusals) == len(options):
            raise refusals[-1]
    return values
