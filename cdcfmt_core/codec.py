"""A format: its :class:`CodecSpec`, and the context of its decoder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar, Union, get_args

import attrs

from cdcfmt_core.column_names import fold, spelled
from cdcfmt_core.encoder import Encoder, EncoderContext
from cdcfmt_core.errors import OptionError, PluginApiError, join_names
from cdcfmt_core.events import Event, Kind, Message, TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout
from cdcfmt_core.lazy import function_of
from cdcfmt_core.options import Option
from cdcfmt_core.texts import one_line, open_logger
from cdcfmt_core.zoneless import warn_zoneless

if TYPE_CHECKING:
    from cdcfmt_core.schemas.statements import Statement
    from cdcfmt_core.schemas.store import SchemaRecord, SchemaStore
    from cdcfmt_core.toolkit.large_messages import ClaimCheckStore
from cdcfmt_core.types import LogicalType

logger = open_logger("cdcfmt_core")

API_VERSION = 1
"""The plugin API of this core.  A plugin states the one that it was written for."""

DEFAULT_MAX_MESSAGE_BYTES = 128 << 20
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.IGNORECASE)

Decode: TypeAlias = Callable[[Message], Iterable[Event]]
ScanSchemas: TypeAlias = Callable[[Message], Iterable["SchemaRecord"]]
ScanStatements: TypeAlias = Callable[[Message], Iterable["Statement"]]
Explain: TypeAlias = Callable[[Message, Mapping[str, Any]], Iterable[tuple[str, Any]]]

_Found = TypeVar("_Found", "SchemaRecord", "Statement", Union["SchemaRecord", "Statement"])


@attrs.frozen
class MarkedScan(Generic[_Found]):
    """A result of ``scan_schemas`` that lets readers search blocks of a file for marks.

    A value that holds none of ``marks`` has no table schemas; without marks any may.  A mark that
    begins with a control character is that of a binary format, and begins a value.
    ``scan_statements`` may return one, too.  ``one_partition``: the first partition of a topic
    holds as much as all of them.
    """

    scan: Callable[[Message], Iterable[_Found]]
    marks: tuple[bytes, ...] = ()
    one_partition: bool = False

    def __call__(self, message: Message) -> Iterable[_Found]:
        return self.scan(message)


@attrs.frozen
class Projection:
    """The wanted parts of row images; a decoder need not parse the others.

    ``columns`` are the only ones that are looked at, besides the key; None means all.
    Without ``before_updates`` the image before an update only matters where the key
    changes; the key are ``key_columns``, or those that the wire names.  Both are a user's
    names: :meth:`key_of` and :meth:`wanted_of` match them with a table's.
    """

    columns: frozenset[str] | None = None
    before_updates: bool = True
    key_columns: tuple[str, ...] = ()
    case_sensitive: bool = True

    def key_of(self, columns: Sequence[str], of_wire: Sequence[str]) -> tuple[str, ...]:
        """The key columns of a table, as it spells them; those of the wire if one is missing."""
        if not self.key_columns:
            return tuple(of_wire)
        given = spelled(self.key_columns, columns, case_sensitive=self.case_sensitive)
        return given if set(given) <= set(columns) else tuple(of_wire)

    def of(self, table: TableSchema) -> tuple[tuple[str, ...], frozenset[str]]:
        """The key columns of a table, and the names of the wanted columns."""
        names = table.column_names
        key = self.key_of(names, table.key_columns)
        wanted = self.wanted_of(names, key)
        return key, frozenset(names) if wanted is None else wanted

    def wanted_of(self, columns: Sequence[str], key: Iterable[str]) -> frozenset[str] | None:
        """The wanted columns of a table, with its key columns; None means all."""
        if self.columns is None:
            return None
        same = partial(fold, case_sensitive=self.case_sensitive)
        named = set(map(same, self.columns))
        return frozenset(name for name in columns if same(name) in named).union(key)


@attrs.define
class DecoderContext:
    """The services of a decoder besides its own options; the same for every format.

    ``resolve_type`` is the type map in force.  ``event_filter`` and ``projection`` let a
    decoder skip unwanted rows and columns before it decodes them; the caller filters
    again, so both may be ignored.  ``claim_checks`` is where claim-check messages lie, or
    None.  ``schemas`` are the table schemas that were found before decoding; a decoder
    adds those that it meets.  ``counts`` collects what was done to values without being an
    error, by a text that names it.
    """

    resolve_type: Callable[[str], LogicalType]
    schemas: SchemaStore
    event_filter: EventFilter = attrs.field(factory=EventFilter)
    projection: Projection = attrs.field(factory=Projection)
    source_time_zone: tzinfo | None = None
    claim_checks: ClaimCheckStore | None = None
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    counts: Counter[str] = attrs.field(factory=Counter)
    on_zoneless: Callable[[str, str], None] = warn_zoneless

    @property
    def time_zone(self) -> tzinfo:
        """The source's zone, for wires whose timestamps have none. Defaults to UTC."""
        return self.source_time_zone or UTC

    def note_zoneless_timestamps(self, table: TableSchema) -> None:
        """Warn once of a table's Timestamp columns, for wires whose timestamps have no zone."""
        if self.source_time_zone is None and table.has_timestamps:
            self.on_zoneless(one_line(table.database, 200), one_line(table.table, 200))


@attrs.frozen
class CodecSpec:
    """A format: its name, its options and how to open it.

    Every function may be given by its path, ``"package.module:function"``; it is imported when it
    is first called.

    ``open_decoder(options, context)`` gets validated options by declared name and returns a
    plain callable; ``open_encoder(options, context)`` gets those of ``encode_options`` and
    returns an :class:`Encoder`.  All state lives in what they return.
    A decoder yields the events of one message in order, raises
    :class:`~cdcfmt_core.errors.DecodeError` where the whole message is undecodable, and
    yields :class:`~cdcfmt_core.events.Corrupt` for a single bad row.

    ``scan_schemas(options, context)`` is for formats whose rows may lack their column types:
    it returns a function that finds the table schemas in one message, quickly where there
    are none.  A batch reader looks through its whole input with it before any row is decoded;
    a :class:`MarkedScan` spares it most of that.

    ``scan_statements(options, context)`` is for formats whose rows have their types in part
    (``decimal``): the same for the DDL statements of a message.  A decoder finds what they say
    of a row's table in ``context.schemas.statements``.

    With ``needs_schemas`` no row can be decoded without one.

    ``explain(message, options)`` is for people who look at one message: what stands on the
    wire before it is decoded (versions, lengths, frames, an envelope's fields), each part with
    its name, in order; it may raise DecodeError behind what it could read.  A format whose
    value is one JSON document needs none.

    ``open_layouts(options)`` describes most messages of rows for the compiled kernel
    (:mod:`cdcfmt_core.layout`); empty where these options rule it out.

    ``sniff(message)`` answers from 0.0 (another format) to 1.0 (certainly this one), cheaply: it
    looks at the bytes and never parses a whole message.

    ``ddl_partitions``: whether DDL is written to all partitions or to the first only.
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
    type_map: str = "mysql"
    open_encoder: Callable[[Mapping[str, Any], EncoderContext], Encoder] | None = attrs.field(
        default=None, converter=function_of
    )
    encode_options: tuple[Option, ...] = ()
    ddl_partitions: Literal["all", "first"] = "all"
    scan_schemas: Callable[[Mapping[str, Any], DecoderContext], ScanSchemas] | None = attrs.field(
        default=None, converter=function_of
    )
    scan_statements: Callable[[Mapping[str, Any], DecoderContext], ScanStatements] | None = (
        attrs.field(default=None, converter=function_of)
    )
    needs_schemas: bool = False
    explain: Explain | None = attrs.field(default=None, converter=function_of)
    open_layouts: Callable[[Mapping[str, Any]], Sequence[Layout]] | None = attrs.field(
        default=None, converter=function_of
    )
    aliases: tuple[str, ...] = ()
    api_version: int = API_VERSION

    def __new__(cls, *_: Any, api_version: int = API_VERSION, **__: Any) -> Self:
        """:raises PluginApiError: for another API, whose arguments may be unknown here."""
        if api_version != API_VERSION:
            raise PluginApiError(f"plugin API {api_version}, this cdcfmt-core has {API_VERSION}")
        return super().__new__(cls)

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for names that users cannot write, and what does not go together."""
        for name, text in (("summary", self.summary), ("spec_url", self.spec_url)):
            if not isinstance(text, str):
                raise TypeError(f"format {self.name}: {name} is {text!r}, which is no text")
        if isinstance(self.aliases, str) or not isinstance(self.emits, frozenset | set):
            raise TypeError(f"format {self.name}: aliases are a tuple, and emits is a frozenset")
        for name in (self.name, *self.aliases):
            if _NAME.fullmatch(name) is None:
                raise ValueError(f"format {name!r}: a name has letters, digits and dashes between")
        if unknown := self.emits - set(get_args(Kind)):
            raise ValueError(f"format {self.name}: emits unknown kinds: {join_names(unknown)}")
        if self.needs_schemas and self.scan_schemas is None:
            raise ValueError(f"format {self.name}: needs_schemas without scan_schemas to find them")
        for options in (self.options, self.encode_options):
            names = Counter(option.name.lower() for option in options)
            if twice := [name for name, count in names.items() if count > 1]:
                raise ValueError(f"format {self.name}: options declared twice: {join_names(twice)}")

    def own_options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """This format's options among those of several (:func:`format_options`)."""
        names = [option.name for option in self.options]
        return {name: values.get(f"{self.name}.{name}", values[name]) for name in names}


def format_options(codecs: Iterable[CodecSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of several formats by declared name, parsed, or their defaults.

    A name that they declare differently is there as ``format.name``, too: the given value where
    that format takes it, else its default.

    :raises OptionError: for a value that no format takes.
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
