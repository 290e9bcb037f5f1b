"""Bugs that authors of encoders make, sown into copies of open-protocol."""

from __future__ import annotations

from mutants_of_decoders import Mutant

MUTANTS = [
    Mutant(
        "dropped column",
        "test_written_again test_round_trip",
        "encode",
        "        if not cells:\n",
        "        cells = dict(list(cells.items())[:3])\n        if not cells:\n",
    ),
    Mutant(
        "absent written as NULL",
        "test_absent_is_not_written_as_null",
        "encode_plans",
        "                continue\n            value = values[name]\n",
        "                cells[name] = {**cell, 'v': None}\n"
        "                continue\n            value = values[name]\n",
    ),
    Mutant(
        "incomplete written as whole",
        "test_absent_is_not_written_as_null",
        "encode",
        "            said = _ONLY_HANDLE_KEY\n",
        "            pass\n",
    ),
    Mutant(
        "NULL written as absent",
        "test_written_again test_round_trip",
        "encode",
        "        if not cells:\n",
        "        cells = {n: c for n, c in cells.items() if c['v'] is not None} or cells\n"
        "        if not cells:\n",
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
        "encode_plans",
        "self._column(column, column.name in handle)",
        "self._column(column, column is columns[0])",
    ),
    Mutant(
        "update as insert",
        "test_written_again test_round_trip",
        "encode",
        'if event.op != "update" or not self._old_values:',
        'if event.op == "update":',
    ),
    Mutant(
        "delete of the wrong image",
        "test_round_trip",
        "encode",
        "row, _ = images_of(event)",
        "row = event.before or event.after or images_of(event)[0]",
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
        "batches",
        "            complete += self.take()\n",
        "            complete += self.take()\n"
        "            if self.limits.max_rows > 1:\n"
        "                self._rows, self._key, self._value = 1, bytearray(HEAD + key), "
        "bytearray(value)\n",
    ),
    Mutant(
        "time zone ignored in encoding",
        "test_written_again test_round_trip",
        "encode_plans",
        "time_zone=self._context.time_zone, number",
        "time_zone=__import__('datetime').UTC, number",
    ),
    Mutant(
        "printers of the first encoder's time zone",
        "test_deterministic",
        "encode_plans",
        "render = value_printer(encoding, column.type, tools)",
        "render = globals().setdefault('shared', {}).setdefault(\n"
        "                    str(column.type), value_printer(encoding, column.type, tools)\n"
        "                )",
    ),
    Mutant(
        "UTF-8 written as latin-1",
        "test_round_trip",
        "encode_plans",
        "                render = value_printer(encoding, column.type, tools)\n",
        "                render = value_printer(encoding, column.type, tools)\n"
        "                if isinstance(column.type, Text):\n"
        "                    render = (\n"
        "                        lambda known:"
        " lambda value: known(value.encode().decode('latin-1'))\n"
        "                    )(render)\n",
    ),
    Mutant(
        "decimals written through floats",
        "test_written_again test_round_trip",
        "encode_plans",
        "                render = value_printer(encoding, column.type, tools)\n",
        "                render = value_printer(encoding, column.type, tools)\n"
        "                if type(column.type).__name__ == 'Decimal':\n"
        "                    render = lambda value: str(float(value))\n",
    ),
    Mutant(
        "the order of a set is written",
        "test_deterministic",
        "encode_plans",
        "columns = sorted(table.columns, key=lambda column: valid_name(column.name).encode())",
        "columns = [c for n in {c.name for c in table.columns} for c in table.columns"
        " if c.name == n]",
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
        "encode_plans",
        "            raise value_error(name, value, error) from error",
        "            raise",
    ),
    Mutant(
        "an EncodeError without its column",
        "test_bad_values_are_not_written",
        "encode_plans",
        "            raise value_error(name, value, error) from error",
        "            raise EncodeError(str(error)) from error",
    ),
    Mutant(
        "text that is no JSON any more",
        "test_bad_values_are_not_written",
        "encode",
        'cell["v"] = valid_text(cell["v"], self._context, column=name)',
        "cell[\"v\"] = cell[\"v\"].encode('utf-8', 'surrogateescape').decode('latin-1')",
    ),
    Mutant(
        "encode option undocumented",
        "test_options_are_documented",
        "options",
        'help="Write only changed columns among the old values."',
        'help="Only changes"',
    ),
    Mutant(
        "encode option that nobody declares",
        "test_every_option_works",
        "encode",
        'self._old_values: bool = options["outputOldValue"]',
        'self._old_values: bool = options.get("oldValues", options["outputOldValue"])',
    ),
    Mutant(
        "an encode option that does not work",
        "test_every_option_works",
        "encode",
        'self._only_updated: bool = options["onlyOutputUpdatedColumns"]',
        'self._only_updated: bool = {"false": 0}[str(options["onlyOutputUpdatedColumns"]).lower()]',
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
