"""The effect of a changed column definition on stored values.

MODIFY, CHANGE and CONVERT TO CHARACTER SET convert stored values without a row message.
:func:`conversion` compares the old and the new definition:

- *same*: every value stays as it is.
- *convert*: each value changes in a way that is the same in MySQL, MariaDB and TiDB, whatever
  the ``sql_mode``: where a strict server would reject a value, the statement has failed.
- *halt*: values may change in another way, or the definitions are incomplete.

``tests/sync/test_alter.py`` holds each of them to a real MariaDB.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import attrs

from cdcfmt_mysql.column_type import (
    GEOMETRY_BASES,
    TEXT_BASES,
    ColumnType,
    parse_column_type,
)
from cdcfmt_mysql.lexemes import Lexeme, NotUnderstood
from cdcfmt_mysql.statement_reader import StatementReader

Step: TypeAlias = tuple[
    Literal["null", "round", "clip", "cut", "trim", "pad", "single"], tuple[str, ...]
]
"""A step of a conversion, and its arguments:

- ``null``: NULL becomes the argument, a number or a text.
- ``round``: to so many decimal places, halves away from zero.
- ``clip``: to the lowest and the highest value.
- ``cut``: to so many characters, or bytes of binary values.
- ``trim``: without blanks at the end.
- ``pad``: with zero bytes to this length.
- ``single``: to the nearest number of single precision, which texts such as 1.1 stand for.
"""

_MAX_DIGITS: Final = 38
"""Longer decimals are texts in Spark."""


@attrs.frozen
class Conversion:
    """The effect on stored values: ``steps`` in order, or ``halt``, the reason why it is unknown.

    :ivar names: the steps hold for ENUM and SET as names, not as numbers.
    """

    steps: tuple[Step, ...] = ()
    halt: str | None = None
    names: bool = False

    @property
    def kind(self) -> Literal["same", "convert", "halt"]:
        if self.halt is not None:
            return "halt"
        return "convert" if self.steps else "same"


SAME: Final = Conversion()


def _halt(reason: str) -> Conversion:
    return Conversion(halt=reason)


@attrs.frozen
class Definition:
    """A column's definition.

    :ivar text: the definition, without the column's name.
    :ivar whole: from a statement, whose missing parameters are MySQL's defaults; those of a
        message's type are unknown.
    :ivar nullable: None if unknown: a setting decides on NULL in a TIMESTAMP.
    :ivar generated: the expression of a generated column, and how it is kept.
    :ivar numbered: whether it has AUTO_INCREMENT.
    """

    text: str
    whole: bool
    type: ColumnType
    nullable: bool | None = None
    generated: str | None = None
    numbered: bool = False
    charset: str | None = None

    @classmethod
    def of_message(cls, text: str) -> Definition:
        """From a column's type in a message."""
        parsed = parse_column_type(text)
        return cls(text, False, parsed, charset=parsed.charset)

    @classmethod
    def of_statement(cls, text: str) -> Definition:
        """From the text behind a column's name in CREATE TABLE or ALTER TABLE.

        :raises NotUnderstood: for text that cannot be split into tokens.
        """
        readers = StatementReader.of(text)
        if len(readers) != 1 or not readers[0].left:
            raise NotUnderstood("a column has no definition")
        return cls.read(readers[0])

    @classmethod
    def read(cls, reader: StatementReader) -> Definition:
        """From a reader behind the column's name."""
        if not reader.left:
            raise NotUnderstood("a column has no definition")
        text = reader.text[reader.left[0].start : reader.left[-1].end]
        parsed = parse_column_type(text)
        words = [lexeme.upper for lexeme in outside_parentheses(reader.left)]
        is_serial = words[0] == "SERIAL"
        generated = _expression(reader) if "AS" in words else None
        not_null = ("NOT", "NULL") in pairwise(words) or is_serial or "PRIMARY" in words
        is_unknown = parsed.base == "timestamp" and "NULL" not in words
        return cls(
            text,
            True,
            parsed,
            nullable=None if is_unknown else not not_null,
            generated=generated,
            numbered=is_serial or "AUTO_INCREMENT" in words,
            charset=parsed.charset or _charset_of_collation(reader),
        )

    @property
    def base(self) -> str:
        return self.type.base

    def says_no_more(self, other: Definition) -> bool:
        """Whether ``other``, of a message, may be this definition; it may lack parameters."""
        mine, others = self.type, other.type
        params, theirs = self._params(), other._params()
        elements = others.elements is None or mine.elements in (None, others.elements)
        return (
            mine.base == others.base
            and mine.unsigned == others.unsigned
            and elements
            and (params == theirs or not others.params or not (mine.params or self.whole))
        )

    def _params(self) -> tuple[int, ...]:
        """The parameters that change values, with MySQL's defaults."""
        params = self.type.params
        if self.base in _INTEGERS or self.base == "year":
            return ()
        if self.base == "decimal":
            return (*params, 0)[:2] if any(params) else (10, 0) if self.whole else ()
        if self.base in ("datetime", "timestamp", "time"):
            return params or ((0,) if self.whole else ())
        if self.base in ("bit", "char", "binary"):
            return params if any(params) else (1,) if self.whole else ()
        return params


def outside_parentheses(lexemes: list[Lexeme]) -> list[Lexeme]:
    """The lexemes outside of parentheses, with the opening ones."""
    found, depth = [], 0
    for lexeme in lexemes:
        is_mark = lexeme.kind == "mark"
        if not depth:
            found.append(lexeme)
        depth += (is_mark and lexeme.text == "(") - (is_mark and lexeme.text == ")")
    return found


def _expression(reader: StatementReader) -> str:
    """The expression of a generated column, and how it is kept, in one spelling."""
    depth = 0
    for at, lexeme in enumerate(reader.left):
        if lexeme.kind == "mark":
            depth += (lexeme.text == "(") - (lexeme.text == ")")
        elif not depth and lexeme.upper == "AS":
            inner = reader.parenthesis(at + 1)
            text = " ".join(
                each.text if each.kind == "string" else each.text.lower() for each in inner
            )
            kept = "virtual" if reader.is_virtual() else "stored"
            return f"{kept} {text}"
    return ""


def _charset_of_collation(reader: StatementReader) -> str | None:
    outer = outside_parentheses(reader.left)
    for at, lexeme in enumerate(outer[:-1]):
        if lexeme.upper == "COLLATE":
            return outer[at + 1].text.lower().partition("_")[0]
    return None


# --- Character sets ---

_ALIASES: Final = {"utf8": "utf8mb3"}
_OF_UNICODE: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32"})
"""Character sets of all characters."""
_WITHIN: Final = {
    "ascii": frozenset({"latin1", "utf8mb3", "ucs2", "gbk", "gb18030", "big5", "latin2"}),
    "latin1": frozenset({"utf8mb3", "ucs2"}),
    "ucs2": frozenset({"utf8mb3"}),
    "utf8mb3": frozenset({"ucs2"}),
}
"""Character sets with all characters of another one, beside those of Unicode."""
UNKNOWN: Final = "?"
"""A character set that a statement before the first known one may have set."""


def charset_change(old: str | None, new: str | None) -> str | None:
    """The reason to halt if characters may be lost; None means the table's default charset."""
    was, now = (_ALIASES.get(each or "", each) for each in (old, new))
    if was == now or now in _OF_UNICODE or now in _WITHIN.get(was or "", ()):
        return None
    return f"character set {was or 'of the table'} to {now or 'of the table'} may lose characters"


# --- Types ---

_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_BYTES: Final = {"tiny": (1 << 8) - 1, "": (1 << 16) - 1, "medium": (1 << 24) - 1}
_TEXT_BYTES: Final = {
    **{f"{size}text": length for size, length in _BYTES.items()},
    "longtext": (1 << 32) - 1,
}
_BLOB_BYTES: Final = {
    **{f"{size}blob": length for size, length in _BYTES.items()},
    "longblob": (1 << 32) - 1,
}
_BINARY_BASES: Final = frozenset({"binary", "varbinary", *_BLOB_BYTES})
_MAX_CHARACTER: Final = 4
"""Bytes."""
_LONGEST: Final = (1 << 16) - 1
"""Bytes of a row without its BLOB and TEXT columns."""


def conversion(old: Definition, new: Definition) -> Conversion:
    """The effect of a new definition on the values of a column.

    ``charset`` of both is to be that of the column, where it is known.
    """
    if new.generated is not None or (old.generated or "").startswith("virtual"):
        is_equal = old.generated == new.generated and old.type == new.type
        return SAME if is_equal else _halt("the values of a generated column may change")
    if new.numbered and old.whole and not old.numbered:
        return _halt("AUTO_INCREMENT replaces 0 and NULL")
    if not (old.type.well_formed and new.type.well_formed):
        return SAME if old.text == new.text else _halt("the type is unknown")
    found = _of_types(old, new)
    # The types in messages lack it.
    is_nullable = new.nullable or not new.whole or (new.nullable is old.nullable and old.whole)
    if found.halt is not None or is_nullable or old.nullable is False:
        return found
    value = _NOT_NULL.get(new.base)
    if value is None:
        return _halt("NULL becomes another value, or was none")
    return attrs.evolve(found, steps=(("null", (value,)), *found.steps))


_NOT_NULL: Final = {
    **dict.fromkeys((*_INTEGERS, "decimal", "float", "double"), "0"),
    **dict.fromkeys(TEXT_BASES, ""),
    **dict.fromkeys(_BINARY_BASES, ""),
}
"""The replacement of NULL outside of strict mode."""


def _of_types(old: Definition, new: Definition) -> Conversion:
    for bases, rule in _RULES:
        if old.base in bases and new.base in bases:
            return rule(old, new)
    if old.base in ("enum", "set") and new.base in TEXT_BASES:
        return _names_to_text(old, new)
    if (old.base, new.base) == ("date", "datetime"):
        return SAME
    if old.base in _INTEGERS and _INTEGERS[old.base] <= 32 and new.base == "double":
        return SAME if not new.type.params else _halt("double with digits rounds")
    return _halt(f"{old.base} to {new.base}")


def _numbers(old: Definition, new: Definition) -> Conversion:
    was, now = _limits(old), _limits(new)
    if now is None:
        return _halt("the digits of the new type are unknown")
    low, high, scale = now
    steps: list[Step] = []
    if was is None or was[2] > scale:
        steps.append(("round", (str(scale),)))
    if was is None or was[0] < low or was[1] > high:
        steps.append(("clip", (format(low, "f"), format(high, "f"))))
    # Integers have no parameters here.
    if steps and any(sum(each._params()[:1]) > _MAX_DIGITS for each in (old, new)):
        return _halt(f"decimal with more than {_MAX_DIGITS} digits")
    return Conversion(tuple(steps))


def _limits(definition: Definition) -> tuple[Decimal, Decimal, int] | None:
    """The lowest and the highest value, and the decimal places; None if unknown."""
    unsigned = definition.type.unsigned
    if (bits := _INTEGERS.get(definition.base)) is not None:
        low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return Decimal(low), Decimal(high), 0
    params = definition._params()
    if not params:
        return None
    precision, scale = params
    highest = Decimal((0, (9,) * precision, -scale))
    return Decimal(0) if unsigned else -highest, highest, scale


def _floats(old: Definition, new: Definition) -> Conversion:
    if new.type.unsigned > old.type.unsigned:
        return _halt("negative numbers become 0")
    is_wider = (old.base, new.base) == ("float", "double") and not old.type.params
    if (new.base == old.base or is_wider) and new.type.params in ((), old.type.params):
        return Conversion((("single", ()),)) if is_wider else SAME
    return _halt("floating-point numbers are rounded")


def _texts(old: Definition, new: Definition) -> Conversion:
    if reason := charset_change(old.charset, new.charset):
        return _halt(reason)
    if new.base in _TEXT_BYTES:
        if new.type.params:
            return _halt("the server chooses a type by the length")
        fits = _most_bytes(old, new) <= _TEXT_BYTES[new.base]
        is_same = old.base == new.base and old.charset == new.charset
        return SAME if fits or is_same else _halt("bytes are cut off")
    (length,) = new._params() or (None,)
    if length is None:
        return _halt("the length of the new type is unknown")
    steps: list[Step] = []
    known = old._params() if old.base in ("char", "varchar") else (_TEXT_BYTES[old.base],)
    if not known or known[0] > length:
        steps.append(("cut", (str(length),)))
    if new.base == "char" and old.base != "char":
        steps.append(("trim", ()))
    return Conversion(tuple(steps))


def _most_bytes(old: Definition, new: Definition) -> int:
    """The length in bytes that values may have in the new character set."""
    if (length := _TEXT_BYTES.get(old.base)) is not None:
        is_same = old.charset == new.charset or old.charset in (None, "utf8mb4")
        return length if is_same else length * _MAX_CHARACTER
    params = old._params()
    return min(params[0] * _MAX_CHARACTER, _LONGEST) if params else _LONGEST


def _binaries(old: Definition, new: Definition) -> Conversion:
    was = old._params() if old.base in ("binary", "varbinary") else (_BLOB_BYTES[old.base],)
    most = was[0] if was else _LONGEST
    if new.base in _BLOB_BYTES:
        if new.type.params:
            return _halt("the server chooses a type by the length")
        return SAME if most <= _BLOB_BYTES[new.base] else _halt("bytes are cut off")
    (length,) = new._params() or (None,)
    if length is None:
        return _halt("the length of the new type is unknown")
    steps: list[Step] = []
    if most > length:
        steps.append(("cut", (str(length),)))
    if new.base == "binary" and not (old.base == "binary" and was and was[0] >= length):
        steps.append(("pad", (str(length),)))
    return Conversion(tuple(steps))


def _fractions(old: Definition, new: Definition) -> Conversion:
    was, now = old._params(), new._params()
    if was == now and was:
        return SAME
    if new.base == "time":
        return _halt("times are printed with other digits")
    if now and now[0] >= (was[0] if was else 6):
        return SAME
    return _halt("MySQL and TiDB round fractions of seconds, MariaDB cuts them off")


def _bits(old: Definition, new: Definition) -> Conversion:
    was, now = old._params(), new._params()
    if was and now and (was == now or 1 < was[0] <= now[0]):
        return SAME
    return _halt("bits are cut off, or a boolean becomes a number")


def _members(old: Definition, new: Definition) -> Conversion:
    was, now = old.type.elements, new.type.elements
    if reason := charset_change(old.charset, new.charset):
        return _halt(reason)
    if was is None or now is None:
        return _halt("the members are unknown")
    if now[: len(was)] == was:
        return SAME
    if not {*was} <= {*now}:
        return _halt("members are missing, or spelled in another way")
    if new.base == "set":
        return _halt("the order of the members changes")
    return Conversion(names=True)


def _names_to_text(old: Definition, new: Definition) -> Conversion:
    names = old.type.elements
    if reason := charset_change(old.charset, new.charset):
        return _halt(reason)
    if names is None:
        return _halt("the members are unknown")
    longest = max(map(len, names)) if old.base == "enum" else len(",".join(names))
    as_text = Definition.of_statement(f"varchar({longest})")
    found = _texts(as_text, attrs.evolve(new, charset=None))
    return attrs.evolve(found, names=True) if found.kind == "same" else _halt("names are cut off")


def _equal(old: Definition, new: Definition) -> Conversion:
    return SAME if old._params() == new._params() else _halt(f"{old.base} changes")


def _geometries(old: Definition, new: Definition) -> Conversion:
    return SAME if new.base in (old.base, "geometry") else _halt(f"{old.base} to {new.base}")


_UNCHANGEABLE: Final = ("date", "year", "json", "vector", "uuid", "inet4", "inet6")
_RULES: Final = (
    (frozenset({*_INTEGERS, "decimal"}), _numbers),
    (frozenset({"float", "double"}), _floats),
    (TEXT_BASES, _texts),
    (_BINARY_BASES, _binaries),
    *((frozenset({base}), _fractions) for base in ("datetime", "timestamp", "time")),
    (frozenset({"bit"}), _bits),
    *((frozenset({base}), _members) for base in ("enum", "set")),
    *(
        (frozenset({base}), _equal)
        for base in ("date", "year", "json", "vector", "uuid", "inet4", "inet6")
    ),
    (GEOMETRY_BASES, _geometries),
)
