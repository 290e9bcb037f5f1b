"""Typical bugs of decoders, in copies of open-protocol."""

from __future__ import annotations

import attrs


@attrs.frozen
class Mutant:
    """A bug: in which file ``old`` becomes ``new``, and which tests must each see it."""

    bug: str
    tests: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant("wrong endian", "test_golden", "frames", 'Struct(">q")', 'Struct("<q")'),
    Mutant(
        "off-by-one batch",
        "test_golden test_no_row_is_left_out",
        "frames",
        "    return frames\n",
        "    return frames[:-1] or frames\n",
    ),
    Mutant(
        "dropped rows", "test_golden", "decode", "if event is not None:", "if event and index < 8:"
    ),
    Mutant(
        "UTF-8 as latin-1",
        "test_golden",
        "decode",
        "return loads_fast(orjson.loads, data)",
        'return orjson.loads(data.decode("latin-1"))',
    ),
    Mutant(
        "float decimals",
        "test_golden test_digits_are_kept",
        "columns",
        "        context = self._context\n",
        "        if type(column.type).__name__ == 'Decimal':\n"
        "            return lambda text: __import__('decimal').Decimal(float(text))\n"
        "        context = self._context\n",
    ),
    Mutant(
        "decimals that are floats",
        "test_golden",
        "columns",
        "        context = self._context\n",
        "        if type(column.type).__name__ == 'Decimal':\n"
        "            return float\n"
        "        context = self._context\n",
    ),
    Mutant(
        "time zone ignored",
        "test_golden",
        "columns",
        "        context = self._context\n",
        "        context = __import__('attrs').evolve(self._context, source_time_zone=None)\n",
    ),
    Mutant(
        "lost watermark",
        "test_every_kind_of_event",
        "decode",
        "return Watermark(commit_ts, index=index, extra=extra_of(key))",
        "return None",
    ),
    Mutant(
        "a kind that is not announced",
        "test_every_kind_of_event",
        "__init__",
        'frozenset({"row", "ddl", "watermark"})',
        'frozenset({"row", "ddl"})',
    ),
    Mutant(
        "NULL for absent",
        "test_absent_is_not_null",
        "decode",
        "before = before_image(old_values, values, cut=only_handle_key, unknown=unknown)",
        "before = Image({name: old_values.get(name) for name in values})",
    ),
    Mutant(
        "absent for NULL",
        "test_null_is_not_absent",
        "decode",
        'values = plan.read(new, "u")',
        'values = {n: v for n, v in plan.read(new, "u").items() if v is not None}',
    ),
    Mutant(
        "milliseconds for a TSO",
        "test_times_have_their_units",
        "decode",
        'commit_ts=key["ts"], index',
        'commit_ts=key["ts"] >> 18, index',
    ),
    Mutant(
        "keys forgotten",
        "test_rows_name_their_keys",
        "plans",
        "handle_key = tuple(column.name for column in columns if column.key)",
        "handle_key = ()",
    ),
    Mutant(
        "time zone of the machine",
        "test_deterministic",
        "decode",
        'commit_ts=key["ts"], index',
        "source_time=int(__import__('datetime').datetime(2024, 1, 1).timestamp()), "
        'commit_ts=key["ts"], index',
    ),
    Mutant(
        "swallowed error",
        "test_any_value_in_any_place",
        "decode",
        "event = Corrupt(error, index)",
        "continue",
    ),
    Mutant(
        "bad messages skipped",
        "test_any_bytes test_cut_off_at_every_byte test_every_bit_is_flipped "
        "test_bytes_lost_or_inserted",
        "decode",
        "    return _Decoder(options, context).decode",
        """\
    decode = _Decoder(options, context).decode

    def skip(message):
        try:
            return decode(message)
        except DecodeError:
            return []

    return skip""",
    ),
    Mutant(
        "an exception that is not a DecodeError",
        "test_any_value_in_any_place test_any_json_in_any_place",
        "plans",
        'raise DecodeError("a column has no value", field=f"{field}.v", sample=cell)',
        'raise KeyError("v")',
    ),
    Mutant(
        "position of a bad row lost",
        "test_any_value_in_any_place",
        "decode",
        "event = Corrupt(error, index)",
        "event = Corrupt(error)",
    ),
    Mutant(
        "position of a good row lost",
        "test_golden",
        "decode",
        'commit_ts=key["ts"], index=index, extra=extra',
        'commit_ts=key["ts"], extra=extra',
    ),
    Mutant(
        "field of an error lost",
        "test_errors_name_the_field",
        "decode",
        '    return error.at(field=f"{field}.{error.field}" if error.field else field)',
        "    return DecodeError(error.reason)",
    ),
    Mutant(
        "state outside of the decoder",
        "test_events_share_no_state",
        "plans",
        "self._plans = Plans(self._make, _COLUMN_BYTES)",
        "self._plans = globals().setdefault('shared', Plans(self._make, _COLUMN_BYTES))",
    ),
    Mutant(
        "parsers of the first decoder's time zone",
        "test_deterministic",
        "columns",
        "        context = self._context\n",
        "        context = globals().setdefault('shared', self._context)\n",
    ),
    Mutant(
        "events that share an object",
        "test_events_share_no_state",
        "message",
        "    return extra or None",
        "    shared = globals().setdefault('shared', {})\n"
        "    shared.update(extra)\n"
        "    return shared or None",
    ),
    Mutant(
        "order of a set",
        "test_deterministic",
        "plans",
        "handle_key = tuple(column.name for column in columns if column.key)",
        "handle_key = tuple({column.name for column in columns})",
    ),
    Mutant(
        "a made-up identity",
        "test_deterministic",
        "message",
        "    return extra or None",
        "    return {**extra, 'uuid': str(__import__('uuid').uuid4())}",
    ),
    Mutant(
        "plans by name only",
        "test_bad_messages_do_not_affect_others",
        "plans",
        "return self._plans.find(database, table, types, stored)",
        "known, key = self.__dict__.setdefault('known', {}), (database, table, stored)\n"
        "        return known.setdefault(key, self._plans.find(database, table, types, stored))",
    ),
    Mutant(
        "sniff too greedy",
        "test_foreign_messages_are_refused",
        "sniff",
        "    if key is None or key[:8] != _VERSION_1:",
        "    if message.value:\n        return 0.5\n    if key is None or key[:8] != _VERSION_1:",
    ),
    Mutant(
        "sniff that expects text",
        "test_any_message_is_sniffed",
        "sniff",
        "    if key is None or",
        "    (key or b'').decode()\n    if key is None or",
    ),
    Mutant(
        "sniff too shy",
        "test_own_messages_are_recognised",
        "sniff",
        "len(key) > 8",
        "len(key) > 100",
    ),
    Mutant(
        "sniff that fails",
        "test_foreign_messages_are_refused",
        "sniff",
        "if key is None or key",
        "if key",
    ),
    Mutant(
        "another format that reads the same",
        "test_other_formats_refuse_its_messages",
        "__init__",
        'name="open-protocol"',
        'name="open-two"',
    ),
    Mutant(
        "a summary of two lines",
        "test_codec_declaration",
        "__init__",
        "summary=\"TiCDC's Open Protocol, ",
        "summary=\"TiCDC's Open Protocol\\n",
    ),
    Mutant(
        "option undocumented",
        "test_options_are_documented",
        "options",
        'help="Maximum number of events in one message; a message with more is corrupt."',
        'help=""',
    ),
    Mutant(
        "undeclared option that users set",
        "test_every_option_works",
        "decode",
        'self._limit = options["maxBatchEvents"]',
        'self._limit = options.get("batchLimit") or options["maxBatchEvents"]',
    ),
    Mutant(
        "a choice that does not work",
        "test_every_option_works",
        "decode",
        '"auto": None}',
        '"auto": "upserts"}',
    ),
    Mutant(
        "allocation by a claimed length",
        "test_false_lengths",
        "frames",
        "        position += 8\n",
        "        position += 8\n        bytearray(min(abs(length), 1 << 28))\n",
    ),
    Mutant(
        "endless loop by a claimed length",
        "test_false_lengths",
        "frames",
        "        position += 8\n",
        "        position += 8\n        while length > 1 << 40:\n            length += 1\n",
    ),
    Mutant(
        "recursion",
        "test_deep_nesting",
        "decode",
        'return loads_refused(data, "")',
        "return __import__('json').loads(data)",
    ),
    Mutant(
        "a value a thousand times in a reason",
        "test_huge_values",
        "plans",
        'read_value(self.readers[name], value, f"{path}.v")',
        'read_value(self.readers[name], value, f"{path}.{str(value) * 1000}")',
    ),
    Mutant(
        "tombstones are corrupt",
        "test_tombstones",
        "decode",
        "        if value is None:\n            return None\n",
        "        if value is None:\n            raise DecodeError('no value', field=field)\n",
    ),
    Mutant(
        "a factory that cannot be pickled",
        "test_factories_and_options_are_pickled",
        "__init__",
        'open_decoder="cdcfmt_open_protocol.decode:open_decoder"',
        "open_decoder=lambda *given: "
        '__import__("cdcfmt_open_protocol.decode").decode.open_decoder(*given)',
    ),
    Mutant(
        "an error that cannot be pickled",
        "test_cut_off_at_every_byte",
        "frames",
        '            raise DecodeError(\n                f"truncated:',
        '            raise type("Local", (DecodeError,), {})(\n                f"truncated:',
    ),
]
