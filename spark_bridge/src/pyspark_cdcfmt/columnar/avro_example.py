"""One Avro message taken apart: what its like must have where, and how its cells stand there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from cdcfmt_core.avro_layout import AvroLayout, AvroRole, Field, Form, ImageField
from cdcfmt_core.wire_avro import read_block, read_bytes, read_choice, read_long
from pyspark_cdcfmt.columnar.structs import Unlike

_FIXED_SIZES: Mapping[Form, int] = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_AS_IN_THE_EXAMPLE = ("database", "table", "same", "never")


@attrs.frozen
class Same:
    """These bytes."""

    expected: bytes


@attrs.frozen
class Number:
    """A long, and of which role."""

    role: AvroRole
    form: Form = "long"


@attrs.frozen
class Skipped:
    """A value that nobody looks at, but for what ``extra`` shows."""

    form: Form
    role: AvroRole


Step: TypeAlias = Same | Number | Skipped | ImageField

Stands: TypeAlias = tuple[int, bytes]
"""The number of a cell's branch, and what stands before its value."""


@attrs.define
class Example:
    """``steps`` is what stands one behind the other; ``cells`` those of all columns that have a
    value in one of the images, None where they are NULL."""

    steps: list[Step] = attrs.field(factory=list)
    cells: list[dict[str, Stands | None]] = attrs.field(factory=list)


def take_apart(layout: AvroLayout, value: bytes) -> Example:
    """The example as its layout has it.

    :raises Unlike: if it is no message that this path can read.
    """
    if not value.startswith(layout.begins):
        raise Unlike("it begins otherwise")
    walk = _Walk(layout, value)
    try:
        return walk.take()
    except Unlike:
        raise
    except Exception as error:
        raise Unlike(f"it is unusual itself: {error}") from error


class _Walk:
    def __init__(self, layout: AvroLayout, value: bytes) -> None:
        self._layout = layout
        self._value = value
        self._at = len(layout.begins)
        self._example = Example([Same(layout.begins)])

    def take(self) -> Example:
        for field in self._layout.fields:
            if isinstance(field, ImageField):
                self._image(field)
            else:
                self._field(field)
        if self._at != len(self._value):
            raise Unlike("it does not end where its fields do")
        return self._example

    def _field(self, field: Field) -> None:
        if field.null:
            start = self._at
            there = self._choice(2)
            self._same(start)
            if not there:
                return
        if field.role == "never":
            start = self._at
            if field.form != "boolean" or self._value[start] != 0:
                raise Unlike("it is no message of rows, or of parts of them")
        if isinstance(field.form, tuple):
            for inner in field.form:
                self._field(inner)
            return
        start = self._at
        self._skip(field.form)
        if field.role in _AS_IN_THE_EXAMPLE:
            self._same(start)
        elif field.role in ("op", "commit_ts", "other_time"):
            self._example.steps.append(Number(field.role))
        else:
            self._example.steps.append(Skipped(field.form, field.role))

    def _same(self, start: int) -> None:
        part = self._value[start : self._at]
        steps = self._example.steps
        last = steps[-1]
        if isinstance(last, Same):
            steps[-1] = Same(last.expected + part)
        else:
            steps.append(Same(part))

    def _image(self, field: ImageField) -> None:
        self._example.steps.append(field)
        if not self._choice(2):
            return
        cells: dict[str, Stands | None] = {}
        self._example.cells.append(cells)
        count, self._at = read_block(self._value, self._at)
        while count:
            for _ in range(count):
                encoded, self._at = read_bytes(self._value, self._at)
                name = encoded.decode("utf-8", "surrogateescape")
                branch = self._choice(len(field.branches))
                form = field.branches[branch]
                start = self._at
                if form == "named":
                    self._skip("bytes")
                stands = branch, self._value[start : self._at]
                self._skip("bytes" if form == "named" else form)
                cells[name] = None if form == "null" else stands
            count, self._at = read_block(self._value, self._at)

    def _choice(self, count: int) -> int:
        number, self._at = read_choice(self._value, self._at, count, "branch")
        return number

    def _skip(self, form: Form) -> None:
        if form == "long":
            _, self._at = read_long(self._value, self._at)
        elif form == "bytes":
            _, self._at = read_bytes(self._value, self._at)
        else:
            self._at += _FIXED_SIZES[form]
