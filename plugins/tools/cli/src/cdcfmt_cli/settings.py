"""Options of the command line: the core's option tables, and a few more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import attrs

from cdcfmt_core.codec import format_options
from cdcfmt_core.decoding import DECODING_OPTIONS
from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Kind, Op
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import Option, unknown_option, validate
from cdcfmt_core.registry import default_registry
from cdcfmt_core.transport import TransportSpec
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
        if ops and not kinds:
            kinds = frozenset({"row", "corrupt"})
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
    declared = {o.name.lower(): o for table in SECTIONS.values() for o in table}
    declared |= {option.name.lower(): option for option in own}
    texts: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    others: list[tuple[str, str]] = []
    for name, value in parse_pairs(pairs):
        key = _key(name)
        if key in declared:
            texts[key] = value
        else:
            others.append((name, value))
    values = validate(texts, declared.values(), owner=OWNER)
    codecs = default_registry().codecs_of(values["protocol"])
    of_codecs = {option.name.lower(): option for codec in codecs for option in codec.options}
    names = {name.lower(): name for name in more}
    of_topics = (
        {option.name.lower(): option.name for option in transport.options} if transport else {}
    )
    codec: dict[str, str] = {}
    rest: dict[str, str] = {}
    topic: dict[str, str] = {}
    for name, value in others:
        if _key(name) in of_codecs:
            codec[_key(name)] = value
        elif _key(name) in names:
            rest[names[_key(name)]] = value
        elif _key(name) in of_topics:
            topic[of_topics[_key(name)]] = value
        elif transport is not None and name.lower().startswith(transport.prefix):
            # The client validates its own settings.
            topic[name.lower()] = value
        else:
            known: list[Option | str] = [*declared.values(), *of_codecs.values()]
            known += [*names.values(), *of_topics.values()]
            raise unknown_option(name, known, owner=OWNER)
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


def _key(name: str) -> str:
    # starting-commit-ts and startingCommitTs are the same option.
    return name.strip().lower().replace("-", "")


def _chosen(given: tuple[str, ...], known: tuple[str, ...], option: str) -> frozenset[str] | None:
    for name in given:
        if name not in known:
            raise OptionError(f"option {option}: {name!r} is not one of {', '.join(known)}")
    return frozenset(given) or None
