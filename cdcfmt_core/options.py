"""Options; each is declared once, as an :class:`Option`.

Option names are case-insensitive, because engines pass them in lower case; texts show the
declared spelling.  Values may be text or already have the option's type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain
from typing import Any, Literal, Self, TypeAlias
from zoneinfo import ZoneInfo

import attrs

from cdcfmt_core.errors import OptionError, PluginApiError, join_names
from cdcfmt_core.texts import did_you_mean, parse_json

API_VERSIONS = range(1, 2)
"""Versions of the plugin API that this core supports.  A spec names the one it was written for."""

OptionType: TypeAlias = Literal[
    "string", "bool", "int", "bytes", "duration", "choice", "list", "time", "timezone"
]


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
    endingsourcetime endingtimestamp enumas excludetables failondataloss groupidprefix
    ignorecolumns imageformat images includecolumns includeheaders includesource includetables
    incompleterows infersamplemessages invalidvalues jsonas kind linesep maxbytespertrigger
    maxcachedschemabytes maxfileage maxfilespertrigger maxoffsetspertrigger maxpartitionbytes
    maxrecordsperpartition maxtriggerdelay minoffsetspertrigger minpartitions mode onschemachange
    ontruncate op pathglobfilter paths requiretables scanschemas schemasearchmessages schemastore
    schemawaittimeout startingcommitts startingoffsets startingoffsetsbytimestamp
    startingoffsetsbytimestampstrategy startingsourcetime startingtimestamp subscribe
    subscribepattern tasklog timeas watermarklookback
    """
)
"""Names of the options of reading, in lower case, which no format may declare: a user's value
would not reach the format, or would reach nothing else.  Tests compare them with the tables."""
WRITING = _BOTH | _names(
    """
    claimcheckrawvalue columntypes compression ifexists largemessagehandlecompression ordered
    largemessagehandleoption maxrecordsperfile partitioncolumns partitioner singletask topic
    synthesizecommitts txnappid txnversion typesfrom unsupportedevents unsupportedvalues upsertas
    """
)
"""The same for writing."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*\*?")
AGO = re.compile(r"(\d{1,9}) *(s|m|h|d|sec|min|second|minute|hour|day)s?( +ago)?", re.IGNORECASE)
_UNITS_AGO = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
# Only digits could be meant as milliseconds, or seconds.
_TIME = re.compile(r"(\d{4}-.{1,40}?|\d{8}(?:T.{1,30}?)?)(?: *([A-Za-z]{2,}[\w/+-]*))?")
_ONE_DIGIT = re.compile(r"(?<=[-:T+ ])(\d)(?=[-:T+ .]|$)")
_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no"}
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""In milliseconds."""


@attrs.frozen
class Option:
    """One option: its name, type, default and meaning.

    - ``type``: ``string``; ``bool``; ``int``; ``bytes`` (an integer with an optional ``k``, ``m``,
      ``g``); ``duration`` (a whole number with a unit: ``ms``,
      ``s``, ``m`` or ``min``, ``h``, ``d``; parsed to a timedelta); ``choice``; ``list``
      (comma-separated text or a JSON array; parsed to a tuple of str); ``time`` (ISO text, or
      ``10 minutes ago``; parsed to a datetime with a zone); ``timezone`` (an IANA name or
      ``+08:00``).
    - ``choices``: the values of type ``choice``.
    - ``minimum``, ``maximum``: inclusive bounds.
    - ``hidden``: never show the value in a text (secrets).
    - ``instead``: names of other tools' options, in lower case, that a user of this one may try,
      and what to do instead; for the error about an unknown option.
    """

    name: str
    help: str
    type: OptionType = "string"
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    hidden: bool = False
    instead: Mapping[str, str] = attrs.field(factory=dict, repr=False, hash=False)

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
            "time": "a time such as 2024-01-31T10:00:00Z, 2024-01-31 (UTC without a zone) or 10 "
            "minutes ago",
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
            raise unknown_option(name, options.values(), owner=owner)
        values[option.name] = option.parse(value)
    return values


def split_by_owner(
    given: Mapping[str, Any],
    *tables: Iterable[Option],
    owner: str,
    prefix: str | None = None,
    ignored: Callable[[str], bool] = lambda name: False,
    refuse: Callable[[str], None] = lambda name: None,
) -> list[dict[str, Any]]:
    """Each table's part of the options, by declared name; then those with the prefix, without it.

    An option that several tables have is the first one's.

    :param prefix: in lower case, of options that a client validates itself.
    :param ignored: whether to leave out a name, in lower case, that no table has.
    :param refuse: raises an error for a name, in lower case, that no table has, if it knows more
        about it than that.
    :raises OptionError: for an unknown option.
    """
    listed = [tuple(table) for table in tables]
    owners: dict[str, tuple[int, str]] = {}
    for place, table in enumerate(listed):
        for option in table:
            owners.setdefault(option.name.lower(), (place, option.name))
    parts: list[dict[str, Any]] = [{} for _ in range(len(listed) + 1)]
    for name, value in given.items():
        key = name.lower()
        if prefix is not None and key.startswith(prefix):
            parts[-1][key.removeprefix(prefix)] = str(value)
        elif key in owners:
            place, declared = owners[key]
            parts[place][declared] = value
        elif not ignored(key):
            refuse(key)
            raise unknown_option(name, chain(*listed), owner=owner)
    return parts


def check_declared(options: object, owner: str, taken: Container[str] = ()) -> None:
    """Check the options that a plugin declares; ``taken``: names in lower case.

    :raises TypeError: if they are not a tuple or list of options.
    :raises ValueError: if two have the same name, or one a name that is taken.
    """
    if not isinstance(options, tuple | list) or not all(isinstance(o, Option) for o in options):
        raise TypeError(f"{owner}: options must be a tuple of Option")
    names = Counter(option.name.lower() for option in options)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ValueError(f"{owner}: options declared twice: {join_names(twice)}")
    if others := [option.name for option in options if option.name.lower() in taken]:
        raise ValueError(
            f"{owner}: options with names that every format has: {join_names(map(repr, others))}; "
            "choose other names"
        )


def check_api_version(version: int | None) -> None:
    """Check the version of a spec, before its other arguments: those of another may differ.

    :raises PluginApiError: unless this core supports it.
    """
    if version in API_VERSIONS:
        return
    oldest, newest = API_VERSIONS[0], API_VERSIONS[-1]
    supported = str(newest) if oldest == newest else f"{oldest} to {newest}"
    named = "an unnamed plugin API" if version is None else f"plugin API {version!r}"
    remedy = "upgrade the plugin"
    if version is None:
        remedy = "give its specs an api_version"
    elif isinstance(version, int) and version > newest:
        remedy = "upgrade cdcfmt-core"
    raise PluginApiError(f"{named}, this cdcfmt-core supports {supported}", remedy)


class Versioned:
    """Base class of specs: checks ``api_version`` before other arguments, which may be unknown."""

    __slots__ = ()

    def __new__(cls, *arguments: Any, **given: Any) -> Self:
        # Unpickling gives no arguments.
        if arguments or given:
            check_api_version(given.get("api_version"))
        return super().__new__(cls)


def check_once(names: Iterable[str]) -> None:
    """:raises OptionError: if an option is given twice, with different upper and lower case."""
    met: dict[str, str] = {}
    for name in names:
        if name.lower() in met:
            raise OptionError(f"options {met[name.lower()]} and {name} are the same: give only one")
        met[name.lower()] = name


describe_owners: list[Callable[[str], str]] = []
"""Functions that name the formats with an option, or return an empty text; for the error about an
unknown option.  The registry adds one."""


def unknown_option(name: str, known: Iterable[Option | str], *, owner: str) -> OptionError:
    """The error for an unknown option, with what to do instead, its formats, or the nearest name.

    :param known: the valid options, or names of options.
    """
    # Formats share some options; list each once.
    names: dict[str, str] = {}
    hint = ""
    for each in known:
        if isinstance(each, Option):
            hint = hint or each.instead.get(name.lower(), "")
            each = each.name
        names[each.lower()] = each
    hint = hint and f": {hint}."
    for describe in describe_owners:
        hint = hint or describe(name)
    hint = hint or did_you_mean(name, names.values()) or "."
    listing = ", ".join(sorted(names.values(), key=str.lower))
    return OptionError(f"{owner} has no option {name!r}{hint} Options: {listing}")


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
    return value if isinstance(value, tzinfo) else _zone(str(value).strip())


def _zone(text: str) -> tzinfo:
    if text.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    if text[:1] in "+-":
        zone = datetime.strptime(text, "%z").tzinfo
        if zone is None:
            raise ValueError(text)
        return zone
    return ZoneInfo(text)


def _parse_time(_: Option, value: Any) -> datetime:
    time = value if isinstance(value, datetime) else _time_of_text(str(value).strip())
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _time_of_text(text: str) -> datetime:
    if (ago := AGO.fullmatch(text)) is not None:
        return datetime.now(UTC) - timedelta(**{_UNITS_AGO[ago[2][0].lower()]: int(ago[1])})
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    try:
        time = datetime.fromisoformat(found[1])
    except ValueError:
        # Spark prints and reads single digits, too.
        time = datetime.fromisoformat(_ONE_DIGIT.sub(r"0\1", found[1]))
    if found[2] is None:
        return time
    if time.tzinfo is not None:
        raise ValueError(text)
    return time.replace(tzinfo=_zone(found[2]))


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
    "time": _parse_time,
    "timezone": _parse_timezone,
}
