"""Typical bugs of transports, in copies of the docs' example."""

from __future__ import annotations

from support.mutants_of_decoders import Mutant

_METHOD = "    def open_client(self) -> SpoolClient:\n"
_PROGRESS = """    def open_progress(self):
        progress = super().open_progress()
        advance = progress.advance
        {}
        return progress

"""


def _overridden(bug: str, tests: str, method: str) -> Mutant:
    return Mutant(bug, tests, "source", _METHOD, method + _METHOD)


def _in_streams(bug: str, tests: str, change: str) -> Mutant:
    return _overridden(bug, tests, _PROGRESS.format(change))


def _changed(bug: str, tests: str, change: str) -> Mutant:
    new = f"yield offset, attrs.evolve(message, {change})"
    return Mutant(bug, tests, "source", "yield offset, message", new)


MUTANTS = [
    # Declaration
    Mutant("no title", "test_transport_declaration", "__init__", '"Spool"', '""'),
    Mutant(
        "options of all topics missing",
        "test_options_are_documented",
        "options",
        "*OFFSET_OPTIONS, *TOPIC_OPTIONS)",
        "*OFFSET_OPTIONS, *TOPIC_OPTIONS[1:])",
    ),
    Mutant("settings shown", "test_options_are_documented", "options", "    hidden=True,\n", ""),
    Mutant(
        "option not declared",
        "test_options_are_documented",
        "sink",
        '    if not values["topic"]:\n',
        '    if not values.get("topics", values["topic"]):\n',
    ),
    Mutant(
        "function without a name",
        "test_sources_and_sinks_are_pickled",
        "__init__",
        '"cdcfmt_spool.options:options_of_url"',
        "lambda url: {}",
    ),
    _overridden(
        "client goes along",
        "test_sources_and_sinks_are_pickled test_a_range_is_read_again",
        "    def __getstate__(self):\n"
        '        return {**self.__dict__, "lock": __import__("threading").Lock()}\n\n',
    ),
    Mutant(
        "token shown",
        "test_secrets_are_hidden",
        "folder",
        'attrs.field(default="", repr=False)',
        'attrs.field(default="")',
    ),
    # Messages
    _changed("key dropped", "test_messages_are_whole[usual] test_every_message_once", "key=None"),
    _changed(
        "headers as a dictionary",
        "test_messages_are_whole[headers of one name]",
        "headers=tuple(dict(message.headers).items())",
    ),
    _changed(
        "empty is NULL", "test_messages_are_whole[empty value]", "value=message.value or None"
    ),
    _changed(
        "value as text",
        "test_messages_are_whole[any bytes]",
        'value=message.value and message.value.decode("utf-8", "replace").encode()',
    ),
    _changed(
        "times in seconds", "test_times", "timestamp=None or (message.timestamp or 0) // 1000"
    ),
    _changed(
        "time of reading",
        "test_a_range_is_read_again",
        'timestamp=__import__("time").time_ns() // 1000',
    ),
    Mutant("time missed", "test_times", "source", "(message.timestamp or 0) >=", "0 >"),
    Mutant(
        "time rounded down to its segment",
        "test_times",
        "source",
        "                    return offset\n",
        "                    return max(segment.start - 1, 0)\n",
    ),
    # Ranges
    Mutant(
        "offsets in the segment",
        "test_every_message_once test_ranges_meet",
        "source",
        "enumerate(lines, segment.start)",
        "enumerate(lines)",
    ),
    Mutant(
        "first message left out",
        "test_every_message_once test_ranges_meet test_a_stream",
        "source",
        "if at <= offset <",
        "if at < offset <",
    ),
    Mutant(
        "whole segments",
        "test_ranges_meet test_a_stream",
        "source",
        "                if at <= offset < wanted.end:\n",
        "                if True:\n",
    ),
    Mutant(
        "an offset without a message is lost",
        "test_offsets_without_messages",
        "source",
        "            at = segment.end\n",
        "            at = max([at, *(offset + 1 for offset, _ in read_segment(segment))])\n",
    ),
    Mutant(
        "readers share a file",
        "test_readers_do_not_disturb_each_other",
        "source",
        '    with segment.path.open("rb") as lines:\n',
        "    lines = read_segment.__dict__.setdefault(segment.path, segment.path.open('rb'))\n"
        "    lines.tell() == segment.path.stat().st_size and lines.seek(0)\n"
        "    if True:\n",
    ),
    Mutant(
        "last offset for the end",
        "test_offsets test_every_message_once",
        "source",
        "return segments[-1].end",
        "return segments[-1].end - 1",
    ),
    Mutant(
        "empty partition forgotten",
        "test_empty_topics test_offsets test_the_end_of_a_stream",
        "source",
        "return 0 if what in (EARLIEST, LATEST) else NO_MESSAGE",
        "return segments[0].start",
    ),
    _overridden(
        "no last messages",
        "test_ends",
        "    def ends(self, ranges, *, seconds=None):\n"
        "        first = [attrs.evolve(r, end=min(r.end, r.start + 10)) for r in ranges]\n"
        "        return super().ends(first, seconds=seconds)\n\n",
    ),
    _overridden(
        "begins at the beginning",
        "test_begin_at",
        "    def begin_at(self, partition, offset):\n"
        "        return super().begin_at(partition, 0)\n\n",
    ),
    Mutant(
        "partitions but the first forgotten",
        "test_every_message_once test_a_stream",
        "source",
        "frozenset(self._folder.partitions(path))",
        "frozenset([0])",
    ),
    # Streams
    _in_streams(
        "no limit",
        "test_a_stream",
        "progress.advance = lambda at, limit, least: advance(at, None, least)",
    ),
    _in_streams(
        "no least",
        "test_the_minimum_of_a_batch",
        "progress.advance = lambda at, limit, least: advance(at, limit, None)",
    ),
    _in_streams(
        "begins again",
        "test_a_stream",
        "progress.advance = lambda at, limit, least: advance({'v': 1}, limit, least)",
    ),
    _in_streams(
        "moves where nothing is new",
        "test_the_end_of_a_stream",
        "progress.advance = lambda at, limit, least: "
        "{**advance(at, limit, least), 'ids': {'now': str(id(object()))}, 'n': at.get('n', 0) + 1}",
    ),
    _in_streams(
        "an offset that is not JSON",
        "test_a_stream test_the_end_of_a_stream",
        "progress.advance = lambda at, limit, least: "
        "{**advance(at, limit, least), 'places': {('t', 0): 1}}",
    ),
    _in_streams(
        "available is what comes", "test_available_now", "progress.stop_at_latest = lambda: None"
    ),
    _in_streams(
        "does not know the end", "test_the_end_of_a_stream", "progress.latest = lambda: None"
    ),
    Mutant(
        "partitions asked for once",
        "test_new_partitions",
        "source",
        "frozenset(self._folder.partitions(path))",
        "self.__dict__.setdefault(name, frozenset(self._folder.partitions(path)))",
    ),
    Mutant(
        "folder kept open",
        "test_the_broker_restarts",
        "folder",
        '(folder / str(partition)).glob("*.jsonl")',
        'map(Path, __import__("os").listdir(segment_path.__dict__.setdefault('
        '(folder, partition), __import__("os").open(folder / str(partition), 0))))',
    ),
    # Loss
    Mutant(
        "lost offsets passed over",
        "test_lost_messages_are_an_error test_lost_messages_are_counted",
        "source",
        "            if segment.start > at:\n",
        "            if False:\n",
    ),
    Mutant(
        "always lenient",
        "test_lost_messages_are_an_error test_a_range_behind_the_end",
        "source",
        'fail = self.options["failOnDataLoss"]',
        "fail = False",
    ),
    Mutant(
        "never lenient",
        "test_lost_messages_are_counted",
        "source",
        'fail = self.options["failOnDataLoss"]',
        "fail = True",
    ),
    Mutant(
        "lost offsets not counted",
        "test_lost_messages_are_counted",
        "source",
        "Counter() if counts is None else counts",
        "Counter()",
    ),
    Mutant(
        "a range with too few messages is not an error",
        "test_a_range_behind_the_end",
        "source",
        "        if at < wanted.end:\n",
        "        if False:\n",
    ),
    Mutant(
        "waits for what never comes",
        "test_a_range_behind_the_end",
        "source",
        "        if at < wanted.end:\n",
        "        while at < wanted.end and not __import__('time').sleep(0.05):\n            pass\n"
        "        if at < wanted.end:\n",
    ),
    Mutant(
        "begins with what is gone",
        "test_lost_messages_are_an_error",
        "source",
        "return segments[0].start",
        "return 0",
    ),
    Mutant(
        "a lost topic is no error",
        "test_a_deleted_topic test_a_recreated_topic test_a_recreated_and_filled_topic",
        "source",
        "SpoolOptions.parse(values,",
        'SpoolOptions.parse({**values, "failOnDataLoss": False},',
    ),
    Mutant(
        "a topic is known by its name",
        "test_a_recreated_and_filled_topic",
        "source",
        '(path / "lock").read_text()',
        "None",
    ),
    # Connection errors
    Mutant("no remedy", "test_unreachable_broker", "folder", "{self.path}; check spool.path", "it"),
    Mutant(
        "asks for ever",
        "test_unreachable_broker",
        "folder",
        "        if not self.path.is_dir():\n",
        "        while not self.path.is_dir():\n            __import__('time').sleep(0.05)\n"
        "        if not self.path.is_dir():\n",
    ),
    Mutant(
        "another error than it should be",
        "test_unreachable_broker",
        "folder",
        'raise error(f"there is no folder',
        'raise OSError(f"there is no folder',
    ),
    Mutant(
        "anyone may read", "test_a_wrong_login", "folder", "if token.exists() and", "if False and"
    ),
    Mutant(
        "the token in an error",
        "test_a_wrong_login",
        "folder",
        "with this spool.token; check it",
        "with the spool.token {self.token}",
    ),
    Mutant(
        "a topic that is not there is empty",
        "test_an_unknown_topic",
        "sink",
        "        if found is None:\n",
        "        found = found or self.folder.path\n        if found is None:\n",
    ),
    Mutant("all is well", "test_the_doctor", "folder", '"bad", ', '"ok", '),
    Mutant("no advice", "test_the_doctor", "folder", '"is it mounted here?"', '""'),
    # Writing
    Mutant(
        "written backwards",
        "test_written_messages_round_trip test_flushed_messages_are_readable",
        "sink",
        "start + len(lines)), lines)",
        "start + len(lines)), lines[::-1])",
    ),
    Mutant(
        "not flushed at the end",
        "test_written_messages_round_trip test_without_a_partition",
        "sink",
        "        yield producer\n        producer.flush()\n",
        "        yield producer\n",
    ),
    Mutant(
        "flushed twice",
        "test_flushed_messages_are_readable",
        "sink",
        "        self._waiting.clear()\n",
        "",
    ),
    Mutant(
        "flushed at the end only",
        "test_flushed_messages_are_readable",
        "sink",
        "        yield producer\n        producer.flush()\n",
        "        flush, producer.flush = producer.flush, lambda: None\n"
        "        yield producer\n        flush()\n",
    ),
    Mutant(
        "headers not written",
        "test_messages_are_written_whole[usual] test_written_messages_round_trip",
        "sink",
        "message.headers, timestamp",
        "(), timestamp",
    ),
    Mutant(
        "a tombstone is written empty",
        "test_messages_are_written_whole[no value]",
        "sink",
        "message.value, message.headers",
        'message.value or b"", message.headers',
    ),
    Mutant(
        "refused and written",
        "test_messages_are_written_whole[no value]",
        "sink",
        "        self._waiting[partition].append(",
        "        if message.value is None:\n"
        "            self._waiting[partition].append(b'{\"value\":null}\\n')\n"
        "            self.flush()\n            raise SinkError(f'{self._sink.topic}: no value')\n"
        "        self._waiting[partition].append(",
    ),
    Mutant(
        "a partition too many",
        "test_without_a_partition",
        "sink",
        "% self._count",
        "% (self._count + 1)",
    ),
    Mutant(
        "partitions counted wrong",
        "test_written_messages_round_trip",
        "sink",
        "return len(self.folder.partitions(self.path()))",
        "return 1",
    ),
    Mutant(
        "another error from the block",
        "test_a_block_that_fails",
        "sink",
        "        yield producer\n",
        "        try:\n            yield producer\n        except Exception as error:\n"
        "            raise SinkError('it fails') from error\n",
    ),
]
