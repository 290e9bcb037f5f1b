"""Typical bugs of encoders, in copies of open-protocol."""

from __future__ import annotations

from support.mutants_of_decoders import Mutant

_COLUMNS = "            for column in go_order(table.columns)\n"
_WRITER = "dumps=orjson.dumps, table=table"
_TEMPLATE = 'return ColumnTemplate(label, _encoding(column.type, code), tail="}", null="null}")'
_WRITE = "        key, value = self._rows.find(event.table).write(event, mark=mark, only=only)\n"


def _printed_by(expression: str, *, of: str) -> str:
    """Values of one type are printed by an expression."""
    printer = f"lambda value: {expression}"
    template = _TEMPLATE.removeprefix("return ").removesuffix(")")
    is_type = f"type(column.type).__name__ == {of!r}"
    return f"return {template}, printer=({printer}) if {is_type} else None)"


def _other_image(values: str) -> str:
    """Other values are written than those of the row."""
    return (
        "        image = 'before' if event.op == 'delete' else 'after'\n"
        f"        event = __import__('attrs').evolve(event, **{{image: Image({values})}})\n"
    )


def _refused_by(error: str) -> str:
    """Another error is raised."""
    return (
        f"        try:\n    {_WRITE}"
        f"        except EncodeError as error:\n            raise {error}\n"
    )


MUTANTS = [
    Mutant(
        "dropped column",
        "test_written_again test_round_trip",
        "encode",
        _COLUMNS,
        _COLUMNS.replace("\n", "[:3]\n"),
    ),
    Mutant(
        "absent written as NULL",
        "test_absent_is_not_written_as_null",
        "encode",
        _WRITE,
        _other_image("{**dict.fromkeys(event.table.column_names), **row.values}") + _WRITE,
    ),
    Mutant(
        "incomplete written as whole",
        "test_absent_is_not_written_as_null",
        "encode",
        "mark = _ONLY_HANDLE_KEY if is_marked else None",
        "mark = None",
    ),
    Mutant(
        "NULL written as absent",
        "test_written_again test_round_trip",
        "encode",
        _WRITE,
        _other_image("{n: v for n, v in row.values.items() if v is not None}") + _WRITE,
    ),
    Mutant(
        "watermark not written",
        "test_written_again test_round_trip",
        "encode",
        """return [Message(HEAD + framed(b'{"ts":%d,"t":3}' % event.commit_ts), framed(b""))]""",
        "return []",
    ),
    Mutant(
        "watermark of another time",
        "test_written_again test_round_trip",
        "encode",
        """'{"ts":%d,"t":3}' % event.commit_ts""",
        """'{"ts":%d,"t":3}' % (event.commit_ts >> 18 << 18)""",
    ),
    Mutant(
        "wrong key columns",
        "test_written_again test_round_trip",
        "encode",
        "_template(column, column.name in key, writer)",
        "_template(column, column is go_order(table.columns)[0], writer)",
    ),
    Mutant(
        "update as insert",
        "test_written_again test_round_trip",
        "encode",
        '"update": (row, old, "}") if self.old_values else (row, "}"),',
        '"update": (row, "}"),',
    ),
    Mutant(
        "delete of the wrong image",
        "test_round_trip",
        "encode",
        "            return self._batch.add(*self._row(event))",
        "            event = __import__('attrs').evolve(event, after=event.before or event.after)\n"
        "            return self._batch.add(*self._row(event))",
    ),
    Mutant(
        "the last batch is lost",
        "test_written_again test_round_trip",
        "encode",
        "        return self._batch.take()",
        "        return []",
    ),
    Mutant(
        "off-by-one batch in encoding",
        "test_round_trip",
        "encode",
        "            complete += self.take()\n",
        "            complete += self.take()\n"
        "            if self.limits.max_rows > 1:\n"
        "                self._rows, self._key, self._value = 1, bytearray(HEAD + key), "
        "bytearray(value)\n",
    ),
    Mutant(
        "time zone ignored in encoding",
        "test_written_again test_round_trip",
        "encode",
        _WRITER,
        _WRITER + ", time_zone=__import__('datetime').UTC",
    ),
    Mutant(
        "printers of the first encoder's time zone",
        "test_deterministic",
        "encode",
        _WRITER,
        _WRITER + ", time_zone=globals().setdefault('first', self.context.time_zone)",
    ),
    Mutant(
        "UTF-8 written as latin-1",
        "test_round_trip",
        "encode",
        _TEMPLATE,
        _printed_by("value.encode().decode('latin-1')", of="Text"),
    ),
    Mutant(
        "decimals written through floats",
        "test_written_again test_round_trip",
        "encode",
        _TEMPLATE,
        _printed_by("str(float(value))", of="Decimal"),
    ),
    Mutant(
        "the order of a set is written",
        "test_deterministic",
        "encode",
        _COLUMNS,
        "            for column in set(table.columns)\n",
    ),
    Mutant(
        "the event is changed",
        "test_written_again",
        "encode",
        "            return self._batch.add(*self._row(event))",
        "            event.extra = {**(event.extra or {}), 'written': True}\n"
        "            return self._batch.add(*self._row(event))",
    ),
    Mutant(
        "a value that does not fit is no EncodeError",
        "test_bad_values_are_not_written",
        "encode",
        _WRITE,
        _refused_by("error.__cause__ or error"),
    ),
    Mutant(
        "an EncodeError without its column",
        "test_bad_values_are_not_written",
        "encode",
        _WRITE,
        _refused_by("EncodeError(error.reason) from error"),
    ),
    Mutant(
        "a printer that fails otherwise",
        "test_bad_values_are_not_written",
        "encode",
        _TEMPLATE,
        _printed_by("{'x': 1}[value]", of="Text"),
    ),
    Mutant(
        "encode option undocumented",
        "test_options_are_documented",
        "options",
        'help="Write only the old values of changed columns."',
        'help="Only changes"',
    ),
    Mutant(
        "undeclared encode option",
        "test_every_option_works",
        "encode",
        'self._old_values: bool = options["outputOldValue"]',
        'self._old_values: bool = options.get("oldValues", options["outputOldValue"])',
    ),
    Mutant(
        "an encode option that does not work",
        "test_every_option_works",
        "encode",
        'only_updated=options["onlyOutputUpdatedColumns"]',
        'only_updated={"false": 0}[str(options["onlyOutputUpdatedColumns"]).lower()]',
    ),
    Mutant(
        "an encoder's factory that cannot be pickled",
        "test_factories_and_options_are_pickled",
        "__init__",
        'open_encoder="cdcfmt_open_protocol.encode:open_encoder"',
        "open_encoder=lambda *given: "
        '__import__("cdcfmt_open_protocol.encode").encode.open_encoder(*given)',
    ),
]
