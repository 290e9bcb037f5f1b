"""Options of the command line: the core's option tables, and a few more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import attrs

from cdcfmt_core.codec import AUTO, format_options
from cdcfmt_core.decoding import DECODING_OPTIONS
from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Kind, Op
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import READING, Option, check_once, split_by_owner, validate
from cdcfmt_core.registry import default_registry
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.writer_schemas import registry_options
from cdcfmt_files.sources.options import FILE_OPTIONS, InputOptions

OWNER = "cdcfmt"

EVENT_OPTIONS = (
    Option(
        name="kind",
        type="list",
        default=(),
        help=f"Only events of these kinds: {', '.join(get_args(Kind))}.",
    ),
    Option(
        name="op",
        type="list",
        default=(),
        help=f"Only rows of these operations: {', '.join(get_args(Op))}.",
    ),
)

TABLE_OPTION = Option(
    name="table",
    help="Only this table: `database.table` or `database.schema.table`, exact case. Put a part "
    "with a dot or blank in backticks.",
)


def _filters(option: Option) -> bool:
    return option.name.endswith(("Tables", "CommitTs"))


SECTIONS: dict[str, tuple[Option, ...]] = {
    "Which events": EVENT_OPTIONS + tuple(filter(_filters, DECODING_OPTIONS)),
    "How to read": tuple(option for option in DECODING_OPTIONS if not _filters(option)),
    "Files": FILE_OPTIONS,
}
"""Options of every reading command, by their heading in ``--help``."""


@attrs.frozen
class Settings(InputOptions):
    """Options by declared name.

    - ``values``: common options, validated
    - ``codec``: options of the formats, validated
    - ``rest``: options that the command validates itself, as text
    - ``topic``: options that the transport validates, as text
    """

    codec: Mapping[str, Any] = attrs.field(repr=False)
    rest: Mapping[str, str]
    topic: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    def get(self, name: str) -> Any:
        """The value of an option that only some commands have."""
        return self.values.get(name)

    def event_filter(self) -> EventFilter:
        """A filter for the events that the options select.

        :raises OptionError: if no row can pass the filter.
        """
        kinds = _chosen(self["kind"], get_args(Kind), "kind")
        ops = _chosen(self["op"], get_args(Op), "op")
        if kinds or ops:
            # Bad messages are always read: what is left out is counted.
            kinds = (kinds or frozenset({"row"})) | {"corrupt"}
        wanted = EventFilter.of(self.values, table=self.table, kinds=kinds, ops=ops)
        wanted.check()
        return wanted


def parse_settings(
    given: Mapping[str, Any],
    pairs: Iterable[str] = (),
    own: Iterable[Option] = (),
    more: Iterable[str] = (),
    transport: TransportSpec | None = None,
) -> Settings:
    """Settings from click's values and the ``name=value`` texts of ``-o``.

    :param own: Further options of the command.
    :param more: Option names that the command validates itself.
    :param transport: Transport of the topics that are read.
    :raises OptionError: for an unknown option, and for an invalid value.
    """
    declared = [option for table in (*SECTIONS.values(), own) for option in table]
    prefix = None if transport is None else transport.prefix
    texts = {
        name if prefix and name.lower().startswith(prefix) else name.replace("-", ""): value
        for name, value in parse_pairs(pairs)
    }
    check_once(texts)
    declared += registry_options(texts, default_registry())
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    lower = {name.lower(): value for name, value in texts.items()}
    protocol = lower.get("protocol", values.get("protocol", AUTO))
    codecs = default_registry().codecs_of(protocol)
    common, codec, rest, topic, client = split_by_owner(
        texts,
        declared,
        [option for codec in codecs for option in codec.options],
        [Option(name=name, help="") for name in more],
        () if transport is None else transport.options,
        owner=OWNER,
        prefix=prefix,
        refuse=_refuse,
    )
    # The client validates its own settings.
    topic |= {f"{prefix}{name}": value for name, value in client.items()}
    values = validate({**values, **common}, declared, owner=OWNER)
    return Settings(values, format_options(codecs, codec), rest, topic)


def parse_pairs(pairs: Iterable[str], flag: str = "-o") -> Iterator[tuple[str, str]]:
    """Names and values of ``-o`` or another flag.

    :raises OptionError: for a text that has no name or no value.
    """
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark:
            raise OptionError(f"{flag} {pair}: write it as {flag} name=value")
        yield name.strip(), value


def _refuse(name: str) -> None:
    """:raises OptionError: for an option, in lower case, that has a meaning in another place."""
    if (place := place_of(name)) is not None:
        raise OptionError(f"option {name} {place}")


def place_of(name: str) -> str | None:
    """Where an option, in lower case, has a meaning, if not in this command; None if unknown."""
    for spec in default_registry().transports().values():
        if spec.options_of_url is not None and name in (o.name.lower() for o in spec.options):
            return f"is for topics, such as {spec.name}://host:port/topic"
    return "has no meaning in this command: leave it out" if name in READING else None


def _chosen(given: tuple[str, ...], known: tuple[str, ...], option: str) -> frozenset[str] | None:
    for name in given:
        if name not in known:
            raise OptionError(f"option {option}: {name!r} is not one of {', '.join(known)}")
    return frozenset(given) or None
