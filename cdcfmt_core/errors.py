"""Every exception of cdcfmt.

Engines pickle them between processes and show users only their text, so each can be rebuilt from
plain arguments, and its text holds all its facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar

from cdcfmt_core.texts import harmless, one_line, qualified, without_secrets

SAMPLE_BYTES = 200
"""Number of bytes or characters of a bad value that an error shows."""

INTERRUPTIONS = (KeyboardInterrupt, GeneratorExit)
"""Exceptions that are not failures of the code that they pass through.  Everything else is one,
also exits and the panics of compiled libraries, which are not an :class:`Exception`."""

_MAX_CHARACTERS = {"reason": 1000, "field": 300, "column": 300}
LONGEST_NAME = 1200  # as long as a path in an object store


class CdcfmtError(Exception):
    """Base class of all errors of cdcfmt."""

    def __str__(self) -> str:
        return harmless(without_secrets(super().__str__()))


class OptionError(CdcfmtError, ValueError):
    """An option is unknown or misspelt, or its value is invalid."""


class UnknownFormatError(CdcfmtError, LookupError):
    """No installed package registers this format, type map or transport."""


class PluginError(CdcfmtError):
    """Base class of the failures of plugins: ``problem`` names the package, ``remedy`` helps."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = one_line(problem, _MAX_CHARACTERS["reason"])
        self.remedy = remedy
        super().__init__(f"{self.problem}: {remedy}" if remedy else self.problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.remedy)


class DuplicateFormatError(PluginError):
    """Two packages register the same name, and neither declares that it overrides the other."""


class BrokenPluginError(PluginError):
    """A package cannot be loaded, or a function that it registers fails."""


class PluginApiError(PluginError):
    """The package was written for another version of the plugin API."""


class MissingDependencyError(CdcfmtError, ImportError):
    """An optional library is needed; the text names the command that installs it."""


class SourceError(CdcfmtError):
    """A file, path or topic of the input is missing or cannot be read."""


class SinkError(CdcfmtError):
    """The target of messages cannot be written; the text says what to do."""


class Place(TypedDict, total=False):
    """The position of a message."""

    topic: str | None
    path: str | None
    partition: int | None
    offset: int | None


class _Located:
    """Base class of errors whose callers add the format and the position, with :meth:`at`."""

    __traceback__: TracebackType | None
    protocol: str | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        # Texts from messages may have any length and any character.
        limit = _MAX_CHARACTERS.get(name)
        super().__setattr__(name, one_line(value, limit) if limit and value else value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))

    def __repr__(self) -> str:
        # Not from args: the text of an error with its place, kept for each of many bad rows of a
        # message, would take hundreds of megabytes.
        return f"{type(self).__name__}({str(self)!r})"

    def _located(self, text: str, **place: object) -> str:
        """``text`` after the known parts of the message's format and place."""
        known = [
            f"{name} {one_line(str(value), LONGEST_NAME)}"
            for name, value in place.items()
            if value is not None
        ]
        head = " ".join(filter(None, [self.protocol, ", ".join(known)]))
        return one_line(without_secrets(f"{head}: {text}" if head else text))

    def at(self, **position: Any) -> Self:
        """A copy of the error with the given attributes set; None keeps the old value."""
        known = {name: value for name, value in position.items() if value is not None}
        error = _rebuild(type(self), {**self.__dict__, **known})
        error.__traceback__ = self.__traceback__
        return error


class _OfMessage(_Located):
    topic: str | None = None
    path: str | None = None
    partition: int | None = None
    offset: int | None = None

    def _located(self, text: str, **_: object) -> str:
        place = {"topic": self.topic, "file": self.path, "partition": self.partition}
        return super()._located(text, **place, offset=self.offset)


class DecodeError(_OfMessage, CdcfmtError, ValueError):
    """A message, or one of its rows, cannot be decoded.

    Codecs raise it with ``reason`` and, if known, ``field`` (the path in the message, such as
    ``data[0].price``) and ``sample`` (the bad value).  The caller that knows the message's
    position adds it with :meth:`at`.
    """

    def __init__(self, reason: str, *, field: str | None = None, sample: object = None) -> None:
        self.reason = reason
        self.field = field
        self.sample = None if sample is None else show(sample)
        super().__init__()

    @property
    def summary(self) -> str:
        """Field, reason and sample, without the position."""
        text = f"{self.field}: {self.reason}" if self.field else self.reason
        return f"{text}; got {self.sample}" if self.sample else text

    def __str__(self) -> str:
        return self._located(self.summary)


class MissingSchemaError(DecodeError):
    """A row's table schema is missing: it is elsewhere in the stream, or nowhere in it.

    A reader of the stream may search for it and decode the row again.

    - ``position``: a position in ``stream``, as in :class:`~cdcfmt_core.schemas.store.SchemaStore`.
    - ``exact``: the schema at exactly that position is needed; else the newest one before it.
    """

    def __init__(
        self,
        database: str,
        table: str,
        position: tuple[Any, ...] | None,
        *,
        schema: str | None = None,
        stream: str = "",
        exact: bool = True,
        reason: str | None = None,
        field: str | None = None,
    ) -> None:
        self.database = database
        self.schema = schema
        self.table = table
        self.position = position
        self.stream = stream
        self.exact = exact
        name, where = qualified(database, schema, table), ":".join(map(str, position or ()))
        super().__init__(reason or f"schema {name}@{where} not seen", field=field)


class PolicyError(_OfMessage, CdcfmtError, ValueError):
    """The input violates an option that is set to ``fail``: the read ends, in every mode.

    ``reason`` has the value and what to do; :meth:`at` adds the message's position.
    """

    def __init__(self, reason: str, *, table: str | None = None, column: str | None = None) -> None:
        self.reason = reason
        self.table = table
        self.column = column
        super().__init__()

    def __str__(self) -> str:
        what = ".".join(filter(None, [self.table, self.column]))
        return self._located(": ".join(filter(None, [what, self.reason])))


class EncodeError(_Located, CdcfmtError, ValueError):
    """An event cannot be written in this format.

    Encoders raise it with ``reason``, which says what to do, and, if known, ``column`` and
    ``sample`` (the value).  The encoder's caller adds ``protocol``, ``table``
    (``database.table``) and ``commit_ts`` with :meth:`at`.
    """

    def __init__(
        self,
        reason: str,
        *,
        column: str | None = None,
        sample: object = None,
        protocol: str | None = None,
        table: str | None = None,
        commit_ts: int | None = None,
    ) -> None:
        self.reason = reason
        self.column = column
        self.sample = None if sample is None else show(sample)
        self.protocol = protocol
        self.table = table
        self.commit_ts = commit_ts
        super().__init__()

    def __str__(self) -> str:
        text = f"{self.reason}; got {self.sample}" if self.sample else self.reason
        return self._located(text, table=self.table, column=self.column, commit_ts=self.commit_ts)


class UnsupportedEventError(EncodeError):
    """The format cannot express this event; ``unsupportedEvents=skip`` leaves it out."""


class UnsupportedTypeError(CdcfmtError, TypeError):
    """A type that this engine or format does not support."""


_Error = TypeVar("_Error", bound=_Located)


def _rebuild(cls: type[_Error], state: dict[str, Any]) -> _Error:
    # Not with __init__, which would quote the sample again.
    error = cls.__new__(cls)
    for name, value in state.items():
        setattr(error, name, value)
    return error


def describe(error: BaseException) -> str:
    """The type and text of any error, on one line of bounded length."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be shown)"
    return one_line(
        ": ".join(filter(None, [type(error).__name__, text])), _MAX_CHARACTERS["reason"]
    )


def show(value: object, limit: int = SAMPLE_BYTES) -> str:
    """A short, printable form of any value; long ones are cut before formatting, to save time."""
    if isinstance(value, (bytes, str)):
        text = repr(value[:limit])
        return text if len(value) <= limit else f"{text}… ({len(value)} long)"
    if isinstance(value, Mapping):
        return f"an object with {len(value)} fields"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 10_000:
        # Python cannot print integers of more than 4300 digits.
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"


def join_names(names: Iterable[str]) -> str:
    """Names for an error text, sorted; ``none`` if there are none."""
    return ", ".join(sorted(names)) or "none"
