"""``--where``: a condition in the words of Spark's SQL, over the columns of records.

``=`` ``<>`` ``<`` ``<=`` ``>`` ``>=`` ``<=>``, AND, OR, NOT, IN, BETWEEN, LIKE, ILIKE, RLIKE and IS
NULL, between columns and literals.  Names match without case; dots lead into structs, and names
with other characters stand in backticks.  A comparison with NULL is NULL, which selects nothing.

Numbers compare exactly, also with text that is a number; times compare with any ISO text, which is
UTC without a zone.  Everything else compares as text.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from cdcfmt_core.errors import CdcfmtError, OptionError
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import InvalidValue

Find: TypeAlias = Callable[[tuple[str, ...]], Any]
"""The value of a name; None also where the record has no such column."""
Evaluate: TypeAlias = Callable[[Find], Any]

_MAX_DEPTH = 100
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}
_SUPPORTED = {*_COMPARISONS, "In", "Between", "Is", "NullSafeEQ", "Like", "ILike", "RegexpLike"}


class Condition:
    """A parsed condition, which keeps the names that records had.

    :raises OptionError: for text that is not a condition of this kind.
    """

    def __init__(self, text: str) -> None:
        self._names: set[tuple[str, ...]] = set()
        self._met: set[tuple[str, ...]] = set()
        self._known: dict[str, None] = {}
        self._evaluate = self._build(_parse(text), 0)

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Whether the condition is true for a record."""
        return self._evaluate(lambda names: self._find(record, names)) is True

    def check_names(self, valid: Collection[str]) -> None:
        """Call at the end of the input; ``valid`` are names that a record may lack.

        :raises CdcfmtError: for another name that no record had.
        """
        for names in sorted(self._names - self._met):
            name = ".".join(names)
            if self._known and names[0].lower() not in valid:
                near = did_you_mean(name, self._known) or f"; text is in quotes: '{name}'"
                raise CdcfmtError(f"--where: no record has a column {name}{near}")

    def _find(self, record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
        found: Any = record
        for name in names:
            if not isinstance(found, Mapping):
                return None
            key = name if name in found else _without_case(name, found)
            if key is None:
                self._known.update(dict.fromkeys(record))
                return None
            found = found[key]
        self._met.add(names)
        return found

    def _build(self, node: Any, depth: int) -> Evaluate:
        if depth > _MAX_DEPTH:
            raise OptionError(f"--where: nested more than {_MAX_DEPTH} times")
        kind = type(node).__name__
        if kind == "Column":
            names = _names(node)
            self._names.add(names)
            return lambda find: find(names)
        if kind in ("Literal", "Boolean", "Null", "Neg", "Cast"):
            value = _literal(node)
            return lambda find: value
        if kind in ("And", "Or"):
            decides = kind == "Or"
            left, right = (self._build(each, depth + 1) for each in (node.this, node.expression))
            return lambda find: _either(left(find), right(find), decides)
        if kind == "Paren":
            return self._build(node.this, depth + 1)
        if kind == "Not":
            inner = self._build(node.this, depth + 1)
            return lambda find: _negated(inner(find))
        return self._comparison(kind, node, depth)

    def _comparison(self, kind: str, node: Any, depth: int) -> Evaluate:
        if kind not in _SUPPORTED:
            raise _unsupported(node)
        first = self._build(node.this, depth + 1)
        if kind == "In" and node.expressions:
            choices = [self._build(each, depth + 1) for each in node.expressions]
            return lambda find: _is_in(first(find), [choice(find) for choice in choices])
        if kind == "Between":
            low, high = (self._build(node.args[name], depth + 1) for name in ("low", "high"))
            return lambda find: _either(
                _compared(first(find), low(find), operator.ge),
                _compared(first(find), high(find), operator.le),
                False,
            )
        if node.expression is None:
            raise _unsupported(node)
        second = self._build(node.expression, depth + 1)
        if kind in ("Is", "NullSafeEQ"):
            return lambda find: _equal(first(find), second(find))
        if kind in ("Like", "ILike", "RegexpLike"):
            negated = bool(node.args.get("negate"))
            return lambda find: _is_like(first(find), second(find), kind, negated)
        compare = _COMPARISONS[kind]
        return lambda find: _compared(first(find), second(find), compare)


def _parse(text: str) -> Any:
    # It takes a tenth of a second to import.
    import sqlglot

    try:
        return sqlglot.parse_one(text, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        reason = str(error).partition("\n")[0].partition(". Line")[0]
        raise OptionError(
            f"--where: {text!r} is not a condition ({reason}): write, for example, "
            "\"id = 42 AND name LIKE 'a%'\""
        ) from error


def _names(node: Any) -> tuple[str, ...]:
    return tuple(part.name for part in node.parts)


def _without_case(name: str, names: Iterable[str]) -> str | None:
    return next((each for each in names if each.lower() == name.lower()), None)


def _unsupported(node: Any) -> OptionError:
    return OptionError(
        f"--where: {node.sql()!r} is not supported: compare columns with values, and join "
        "comparisons with AND, OR and NOT"
    )


def _literal(node: Any) -> Any:
    kind = type(node).__name__
    if kind == "Null":
        return None
    if kind == "Boolean":
        return bool(node.this)
    if kind == "Cast" and type(node.this).__name__ == "Literal":
        # TIMESTAMP '2024-01-01 00:00:00'
        return node.this.this
    if kind in ("Neg", "Cast"):
        value = _literal(node.this) if type(node.this).__name__ == "Literal" else None
        if kind == "Cast" or not isinstance(value, Decimal):
            raise _unsupported(node)
        return -value
    return node.this if node.is_string else Decimal(node.this)


def _either(left: Any, right: Any, decides: bool) -> Any:
    """OR (``decides`` is True) or AND of SQL's three values."""
    if left is decides or right is decides:
        return decides
    return None if left is None or right is None else not decides


def _negated(value: Any) -> Any:
    return None if value is None else not value


def _is_in(value: Any, choices: Iterable[Any]) -> Any:
    found = [_compared(value, choice, operator.eq) for choice in choices]
    return True if True in found else None if None in found else False


def _equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is None and right is None
    return _compared(left, right, operator.eq) is True


def _compared(left: Any, right: Any, compare: Callable[[Any, Any], bool]) -> bool | None:
    if left is None or right is None:
        return None
    left, right = _alike(left, right)
    return None if left is None or right is None else compare(left, right)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Both as numbers, times or text; one that is not of the other's kind is None."""
    for number in (left, right):
        if isinstance(number, int | float | Decimal):
            return _number(left), _number(right)
    moments = moment(left), moment(right)
    return (_text(left), _text(right)) if None in moments else moments


def _number(value: Any) -> Decimal | None:
    if isinstance(value, str):
        value = {"true": 1, "false": 0}.get(value.lower(), value)
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, TypeError, ValueError):
        return None
    return None if number.is_nan() else number


_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def moment(value: Any) -> datetime | None:
    """The time of a value, in UTC where it has no zone; None if it has none."""
    if isinstance(value, str) and _DATE.match(value) is not None:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, date):
        return None
    whole = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return whole if whole.tzinfo is not None else whole.replace(tzinfo=UTC)


def _text(value: Any) -> str:
    if isinstance(value, InvalidValue):
        return value.text
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is_like(value: Any, pattern: Any, kind: str, negated: bool) -> bool | None:
    if value is None or pattern is None:
        return None
    text = _text(value)
    if kind == "RegexpLike":
        try:
            return (re.search(str(pattern), text) is None) is negated
        except re.error as error:
            text = f"--where: {pattern!r} is not a regular expression: {error}"
            raise OptionError(text) from None
    flags = re.DOTALL | (re.IGNORECASE if kind == "ILike" else 0)
    return (re.fullmatch(_like(str(pattern)), text, flags) is None) is negated


def _like(pattern: str) -> str:
    """The regular expression of a LIKE pattern: ``%``, ``_``, and a backslash before either."""
    parts = re.findall(r"\\.|[%_]|[^\\%_]+|\\$", pattern, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(part) or re.escape(_unescaped(part)) for part in parts)


def _unescaped(part: str) -> str:
    return part[1:] if part[0] == "\\" and len(part) > 1 else part
