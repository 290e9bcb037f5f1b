"""What people call commands and options that have other names, and the spelling of options.

Texts of the core and of transports spell options as in Spark; the command line has flags for some
of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain

import click

from cdcfmt_cli.settings import SECTIONS, place_of
from cdcfmt_core.registry import default_registry
from cdcfmt_core.texts import did_you_mean

_SYNC = "python -m pyspark_cdcfmt.sync"
COMMANDS = {
    "check": "validate",
    "consume": "cat --follow",
    "corrupt": "validate",
    "count": "stats",
    "dead-letters": "validate",
    "decode": "cat",
    "describe": "schema",
    "dlq": "validate",
    "encode": "convert",
    "errors": "validate",
    "explain": "inspect",
    "export": "cat -f csv",
    "filter": "cat --where",
    "find": "cat --where",
    "grep": "cat --where",
    "head": "cat -n 10",
    "info": "stats",
    "lag": "stats",
    "list": "formats",
    "ls": "formats",
    "offsets": "stats",
    "peek": "cat -n 10",
    "plugins": "formats",
    "print": "cat",
    "query": "cat --where",
    "read": "cat",
    "replay": _SYNC + " --replay",
    "replicate": _SYNC,
    "search": "cat --where",
    "select": "cat --where",
    "show": "inspect",
    "summary": "stats",
    "sync": _SYNC,
    "tables": "stats",
    "tail": "cat --tail 10",
    "transcode": "convert",
    "transform": "convert",
    "verify": "validate",
    "view": "cat",
    "watch": "cat --follow",
}
"""What people call a command that has another name."""

_TOPICS = "topics are an INPUT: kafka://host:9092/topic, and so on"
_TIMES = "--starting-source-time and --ending-source-time select by the time of the source"
_DATABASE = "--include-tables 'shop.*' selects the tables of a database"
_FLAGS: Mapping[str, str] = {
    name: hint
    for names, hint in (
        ("t tablename tables", "--table shop.orders, or --include-tables 'shop.*'"),
        ("d database databases db", _DATABASE),
        ("topic topics subscribe stream queue", _TOPICS),
        ("b bootstrapserver bootstrapservers broker brokers host nameserver servers", _TOPICS),
        ("beginning earliest frombeginning", "-o startingOffsets=earliest"),
        ("g group groupid", "commands join no consumer group"),
        ("after begin from modifiedafter start startdate starttime time", _TIMES),
        ("before end enddate endtime modifiedbefore to", _TIMES),
        ("pk primarykey primarykeys", "cat --key-columns names the key columns"),
        ("condition filter grep query", "cat --where selects rows"),
        ("column fields select", "cat --columns selects columns"),
        ("count head lines max num rows", "cat -n 10 limits rows"),
        ("last latest", "cat --tail 10 prints the last rows"),
        ("tailf watch", "cat --follow waits for new messages"),
        ("o out outputfile", "convert --output FILE; cat prints to stdout"),
        ("format", "--from names the format to read, --to the one to write"),
    )
    for name in names.split()
}
"""What people call options, without hyphens, and what to use."""


def kebab(name: str) -> str:
    """``includeTables`` as ``include-tables``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().replace("_", "-")


def hint_of_flag(name: str, command: click.Command, others: Iterable[click.Command]) -> str:
    """The end of the error about an unknown flag, such as ``--header``; empty without an idea.

    :param others: the other commands, which may have the flag.
    """
    bare = name.lstrip("-")
    key = _without_marks(bare)
    if hint := _FLAGS.get(key):
        return f": {hint}"
    for flag in _flags(command):
        if flag.replace("-", "") == key:
            return f"; did you mean {flag}?"
    registry = default_registry()
    plugins = (registry.codecs(), registry.transports(), registry.schema_registries())
    for option in chain.from_iterable(spec.options for kind in plugins for spec in kind.values()):
        if _without_marks(option.name) == key:
            return f"; write -o {option.name}=VALUE"
    having = [other.name for other in others if other.name and _has(other, kebab(bare))]
    if having:
        return f"; {' and '.join(having)} {'has' if len(having) == 1 else 'have'} it"
    if (elsewhere := place_of(key)) is not None:
        return f"; it {elsewhere}"
    for option in chain.from_iterable(SECTIONS.values()):
        if hint := option.instead.get(key) or option.instead.get(bare.lower()):
            return f": {spelled(hint)}"
    return did_you_mean(f"--{bare}", _flags(command))


def _without_marks(name: str) -> str:
    return re.sub("[-_.]", "", name).lower()


def spelled(text: str) -> str:
    """A text with options of Spark's spelling as flags of the command line."""
    return _SPARKS.sub(lambda match: f"--{kebab(match[0])}", text)


def _has(command: click.Command, flag: str) -> bool:
    return f"--{flag}" in chain.from_iterable(param.opts for param in command.params)


def _flags(command: click.Command) -> Iterable[str]:
    return (o for param in command.params for o in param.opts if o.startswith("--"))


_NAMES = [o.name for table in SECTIONS.values() for o in table if o.name != o.name.lower()]
_FREE = r"(?<![\w./'\"-])(?<!-o )"
_SPARKS = re.compile(rf"{_FREE}(?:{'|'.join([*_NAMES, 'keyColumns'])})(?![\w/'\"-]|\.\w)")
"""Names of options with a flag; those of one word, such as ``table``, are also words of texts."""
