"""Options; each is declared once, as an :class:`Option`.

Option names are case-insensitive, because Spark passes them in lower case; texts show the
declared spelling.  Values may be text or already have the option's type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from datetime import UTC, timedelta, tzinfo
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

import attrs

from cdcfmt_core.errors import OptionError, join_names
from cdcfmt_core.texts import did_you_mean, parse_json

OptionType: TypeAlias = Literal[
    "string", "bool", "int", "bytes", "duration", "choice", "list", "timezone"
]

_ONE_LINE = "a message is one line; lineSep sets another separator"
_COMMIT_TIMES = "select events by startingCommitTs and endingCommitTs"
_OFFSETS = "kafkaConsumer.pollTimeoutMs is how long brokers are asked for offsets"
_OF_OTHERS: dict[str, dict[str, str]] = {
    "protocol": {
        **dict.fromkeys(("encoding", "charset"), "each format has its own, JSON is UTF-8"),
        **dict.fromkeys(("dateformat", "timestampformat"), "the format defines dates and times"),
        "format": "protocol names the format of the messages",
    },
    "pathglobfilter": {
        "badrecordspath": "mode=PERMISSIVE keeps bad rows, with _corrupt_record",
        "basepath": "names of folders are no columns; _source.path has them",
        "cleansource": "files stay where they are",
        "columnnameofcorruptrecord": "the column is _corrupt_record",
        "compression": "it is that of the end of the file's name: .gz, .zst, .bz2",
        "fetchoffset.numretries": _OFFSETS,
        "fetchoffset.retryintervalms": _OFFSETS,
        "ignorecorruptfiles": "a file that cannot be read is an error",
        "ignoremissingfiles": "a missing file is an error: restore it, or list the input again",
        "inferschema": "columns of a table are inferred unless you give a schema",
        "latestfirst": "a stream reads files in order of modification time",
        "modifiedafter": _COMMIT_TIMES,
        "modifiedbefore": _COMMIT_TIMES,
        "multiline": _ONE_LINE,
        "recursivefilelookup": "a folder is read with its subfolders",
        **dict.fromkeys(("mergeschema", "rescueddatacolumn"), "see _rescued (onSchemaChange)"),
        "samplingratio": "inferSampleMessages is the number of messages to sample",
        "topic": "name topics to read by subscribe, subscribePattern or assign",
        "wholetext": _ONE_LINE,
    },
    "ifexists": {
        "mode": "call .mode(...) of the writer",
        "outputmode": "call .outputMode(...) of the writer",
        "codec": "set compression",
    },
}
"""Options of Spark's own sources, by one that a source or sink here has, and what to do instead."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOTH = _names(
    """
    brokertimeout claimcheckstorageuri invalidtext keycolumns keyproperty lineformat
    maxmessagebytes metadataprefix path protocol sourcetimezone splitkeyupdates storageoptions
    table typemap
    """
)
READING = _BOTH | _names(
    """
    assign casesensitive deduplicate endingcommitts endingoffsets endingoffsetsbytimestamp
    endingtimestamp enumas excludetables failondataloss groupidprefix ignorecolumns imageformat
    images includecolumns includeheaders includesource includetables incompleterows
    infersamplemessages invalidvalues jsonas kind linesep maxbytespertrigger
    maxcachedschemabytes maxfileage maxfilespertrigger maxoffsetspertrigger maxpartitionbytes
    maxrecordsperpartition maxtriggerdelay minoffsetspertrigger minpartitions mode
    onschemachange ontruncate op pathglobfilter paths requiretables scanschemas
    schemasearchmessages schemastore schemawaittimeout startingcommitts startingoffsets
    startingoffsetsbytimestamp startingoffsetsbytimestampstrategy startingtimestamp subscribe
    subscribepattern timeas watermarklookback
    """
)
"""Names of the options of reading, in lower case, which no format may declare: a user's value
would not reach the format, or would reach nothing else.  Tests compare them with the tables."""
WRITING = _BOTH | _names(
    """
    claimcheckrawvalue columntypes compression ifexists largemessagehandlecompression
    largemessagehandleoption maxrecordsperfile ordered partitioncolumns partitioner singletask
    synthesizecommitts topic txnappid txnversion typesfrom unsupportedevents upsertas
    """
)
"""The same for writing."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*\*?")
_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no"}
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""In milliseconds."""


@attrs.frozen
class Option:
    """One option: its name, type, default and meaning.

    - ``type``: ``string``; ``bool``; ``int``; ``bytes`` (an integer with an optional ``k``, ``m``,
      ``g`` as in Spark's sizes); ``duration`` (a whole number with a unit of Spark's: ``ms``,
      ``s``, ``m`` or ``min``, ``h``, ``d``; parsed to a timedelta); ``choice``; ``list``
      (comma-separated text or a JSON array; parsed to a tuple of str); ``timezone`` (an IANA name
      or ``+08:00``).
    - ``choices``: the values of type ``choice``.
    - ``minimum``, ``maximum``: inclusive bounds.
    - ``hidden``: never show the value in a text (secrets).
    """

    name: str
    help: str
    type: OptionType = "string"
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    hidden: bool = False

    def __attrs_post_init__(self) -> None:
        """:raises OptionError: for an invalid name, type or bound, or a default of another type."""
        owner = f"option {self.name}"
        if _NAME.fullmatch(self.name) is None:
            raise OptionError(f"option {self.name!r}: a name may have letters, digits and ._-")
        if self.type not in _PARSERS:
            raise OptionError(f"{owner}: type {self.type!r} is not one of {', '.join(_PARSERS)}")
        if (self.type == "choice") != bool(self.choices):
            raise OptionError(f"{owner}: type choice needs choices, and no other type has them")
        bounds = [bound for bound in (self.minimum, self.maximum) if bound is not None]
        if bounds and (self.type not in ("int", "bytes") or bounds != sorted(bounds)):
            raise OptionError(f"{owner}: bounds need type int or bytes, and minimum <= maximum")
        parsed = self.parse(self.default)
        if parsed != self.default or type(parsed) is not type(self.default):
            raise OptionError(
                f"{owner}: the default {self.default!r} is not a parsed value; write {parsed!r}"
            )

    def parse(self, value: Any) -> Any:
        """``value`` in this option's type, the default for None.

        :raises OptionError: for an invalid value; names the valid ones.
        """
        if value is None:
            return self.default
        try:
            parsed = _PARSERS[self.type](self, value)
        except (ValueError, KeyError, TypeError, OSError, OverflowError, RecursionError) as error:
            shown = "the given value" if self.hidden else repr(value)
            raise OptionError(
                f"option {self.name}: {shown} is not {self.describe_type()}"
            ) from error
        if isinstance(parsed, int) and not isinstance(parsed, bool):
            low, high = self.minimum, self.maximum
            if (low is not None and parsed < low) or (high is not None and parsed > high):
                raise OptionError(f"option {self.name}: {parsed} is not {self.describe_type()}")
        return parsed

    def describe_type(self) -> str:
        """The type in words, for error texts and documentation."""
        if self.type == "choice":
            return "one of " + ", ".join(self.choices)
        words = {
            "string": "text",
            "bool": "true or false",
            "int": "an integer",
            "bytes": "a size in bytes such as 65536 or 64m",
            "duration": "a duration such as 90s, 30m, 12h or 7d",
            "list": "a list of names, separated by commas or as a JSON array",
            "timezone": "a time zone such as Asia/Shanghai or +08:00",
        }[self.type]
        if self.minimum is not None:
            words += f" from {self.minimum}"
        if self.maximum is not None:
            words += f" to {self.maximum}"
        return words


def validate(given: Mapping[str, Any], declared: Iterable[Option], *, owner: str) -> dict[str, Any]:
    """Every declared option with its parsed value or default, by declared name.

    :raises OptionError: for an undeclared name (names the nearest one) or an invalid value.
    """
    options = {option.name.lower(): option for option in declared}
    values = {option.name: option.default for option in options.values()}
    for name, value in given.items():
        option = options.get(name.lower())
        if option is None:
            raise unknown_option(name, (o.name for o in options.values()), owner=owner)
        values[option.name] = option.parse(value)
    return values


def check_declared(options: object, owner: str, taken: Container[str] = ()) -> None:
    """Check the options that a plugin declares; ``taken``: names in lower case.

    :raises TypeError: if they are no tuple or list of options.
    :raises ValueError: if two have the same name, or one a name that is taken.
    """
    if not isinstance(options, tuple | list) or not all(isinstance(o, Option) for o in options):
        raise TypeError(f"{owner}: options must be a tuple of Option")
    names = Counter(option.name.lower() for option in options)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ValueError(f"{owner}: options declared twice: {join_names(twice)}")
    if others := [option.name for option in options if option.name.lower() in taken]:
        raise ValueError(
            f"{owner}: options with names that every format has: {join_names(others)}; choose "
            "other names"
        )


def check_once(names: Iterable[str]) -> None:
    """:raises OptionError: if an option is given twice, with different upper and lower case."""
    met: dict[str, str] = {}
    for name in names:
        if name.lower() in met:
            raise OptionError(f"options {met[name.lower()]} and {name} are the same: give only one")
        met[name.lower()] = name


def unknown_option(name: str, known: Iterable[str], *, owner: str) -> OptionError:
    """The error for an unknown option, with what it is here, its formats, or the nearest name."""
    # Formats share some options; list each once.
    lower = {candidate.lower(): candidate for candidate in known}
    names = lower.values()
    instead = (hints.get(name.lower()) for own, hints in _OF_OTHERS.items() if own in lower)
    hint = next((f": {text}." for text in instead if text), "")
    hint = hint or _owners(name) or did_you_mean(name, names) or "."
    listing = ", ".join(sorted(names, key=str.lower))
    return OptionError(f"{owner} has no option {name!r}{hint} Options: {listing}")


def _owners(name: str) -> str:
    """A text that names the formats with this option; empty if there are none."""
    from cdcfmt_core.registry import default_registry

    spelling, owners = "", []
    for codec in default_registry().codecs().values():
        for options, use in ((codec.options, ""), (codec.encode_options, " (for writing)")):
            own = [option.name for option in options if option.name.lower() == name.lower()]
            if own:
                spelling = own[0]
                owners.append(codec.name + use)
                break
    return f"; {spelling} is an option of {', '.join(owners)}." if owners else ""


def _parse_bool(_: Option, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(text)


def _parse_int(_: Option, value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise ValueError(value)
    return int(str(value).strip().replace("_", ""))


def _parse_bytes(option: Option, value: Any) -> int:
    if isinstance(value, int):
        return _parse_int(option, value)
    text = str(value).strip().lower()
    digits = text.rstrip("bkmg")
    unit = text[len(digits) :].removesuffix("b")
    return int(digits) * _SIZE_UNITS[unit]


def _parse_duration(_: Option, value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    text = str(value).strip().lower()
    digits = text.rstrip("dhimns ")
    if not digits.isdecimal():
        raise ValueError(text)
    unit = _DURATION_UNITS[text[len(digits) :].strip()]
    return timedelta(milliseconds=int(digits) * unit)


def _parse_choice(option: Option, value: Any) -> str:
    by_lower = {choice.lower(): choice for choice in option.choices}
    return by_lower[str(value).strip().lower()]


def _parse_list(_: Option, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        text = value.strip()
        value = parse_json(text) if text.startswith("[") else text.split(",")
    items = list(value)
    if not all(isinstance(item, str) for item in items):
        raise ValueError(value)
    return tuple(item.strip() for item in items if item.strip())


def _parse_timezone(_: Option, value: Any) -> tzinfo:
    if isinstance(value, tzinfo):
        return value
    text = str(value).strip()
    if text.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    if text[:1] in "+-":
        from datetime import datetime

        zone = datetime.strptime(text, "%z").tzinfo
        if zone is None:
            raise ValueError(text)
        return zone
    return ZoneInfo(text)


def _parse_string(_: Option, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


_PARSERS = {
    "string": _parse_string,
    "bool": _parse_bool,
    "int": _parse_int,
    "bytes": _parse_bytes,
    "duration": _parse_duration,
    "choice": _parse_choice,
    "list": _parse_list,
    "timezone": _parse_timezone,
}
