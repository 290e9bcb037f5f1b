"""Comparison of kernel and reference, for the conformance kit.

``cdcfmt_testing`` runs :func:`check_kernel` if this package is installed.  It needs pyspark's
types, and no Java.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType, VariantVal

from cdcfmt_core.errors import DecodeError, PolicyError
from cdcfmt_core.events import Event, Message, Op, RowChange
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import InvalidValue, Json
from cdcfmt_files.sources import BadLine, Lines, one_by_one
from cdcfmt_testing import Case, Subject
from cdcfmt_testing.checks.declaration import values_of
from cdcfmt_testing.checks.golden import NotChecked
from cdcfmt_testing.damage import damaged_messages
from cdcfmt_testing.outcome import expect
from cdcfmt_toolkit.layout import layouts_of, writer_layouts_of
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.kernel.learning import Refusal
from pyspark_cdcfmt.options import ReadOptions, parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.read.inference import infer_columns
from pyspark_cdcfmt.rows.json_values import KeepText, parse_json_column
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import changes_schema, events_schema, metadata_fields
from pyspark_cdcfmt.rows.types import TypeOptions
from pyspark_cdcfmt.spark_api import arrow_schema


def table_option(*names: str) -> str:
    quoted = (name.replace("`", "``") for name in names)
    return ".".join(f"`{name}`" for name in quoted)


_ALL_ROWS = dict.fromkeys(("incompleterows", "onschemachange", "ontruncate"), "corrupt")


def parsed(options: dict[str, str]) -> ReadOptions:
    """The options of a comparison, which continues in cases where a read fails by default."""
    return parse_options(_ALL_ROWS | {name.lower(): value for name, value in options.items()})


def inferred_schema(
    messages: Sequence[Message], options: ReadOptions, schemas: SchemaStore | None = None
) -> StructType | None:
    """The inferred schema; None without rows."""
    event_filter = attrs.evolve(options.event_filter(), kinds=None)
    assert options.table is not None
    columns = infer_columns(
        lambda: messages,
        open_decoder(options, event_filter, schemas=schemas),
        options.table,
        options["inferSampleMessages"],
        TypeOptions.of(options.values),
    )
    return changes_schema(columns, options) if columns else None


@attrs.define
class Result:
    """Rows, counts, number of messages with unwanted rows, and the error that ended the read."""

    rows: pa.Table
    counts: Counter[str]
    skipped: int
    error: str | None
    by_kernel: int = 0
    by_reference: int = 0
    refusal: str | None = None
    rows_of_messages: list[int] | None = None
    refusals: Sequence[Refusal] = ()


def read(
    messages: Iterable[Message | BadLine | Lines],
    schema: StructType,
    options: ReadOptions,
    *,
    by_kernel: bool,
    inferred: bool = True,
    as_lists: bool = False,
    **of_task: Any,
) -> Result:
    engine = Engine(ReadTask(schema, options, inferred, **of_task), by_kernel=by_kernel)
    refusals = engine.watch_refusals()
    batches: list[pa.RecordBatch] = []
    counts: list[int] | None = [] if as_lists else None
    error = None
    try:
        made_of: Iterator[Any] = engine.batches(messages)
        if as_lists:
            made_of = engine.lists(one_by_one(messages))
        for made in made_of:
            made.validate(full=True)
            if counts is not None:
                counts += made.value_lengths().to_pylist()
                made = pa.RecordBatch.from_struct_array(made.flatten())
            batches.append(made)
    except (DecodeError, PolicyError) as raised:
        error = str(raised)
        batches, counts = [], None  # the rows before the error depend on the size of batches
    rows = pa.Table.from_batches(batches, arrow_schema(schema)).combine_chunks()
    result = Result(
        rows, engine.counts, engine.skipped, error, 0, 0, engine.refusal, counts, refusals
    )
    if engine.chunks is not None:
        result.by_kernel, result.by_reference = engine.chunks.by_kernel, engine.chunks.by_reference
    return result


def check_equal(
    messages: Sequence[Message | BadLine],
    schema: StructType,
    options: ReadOptions,
    *,
    inferred: bool = True,
    as_lists: bool = False,
    lines: Iterable[Message | BadLine | Lines] | None = None,
    **of_task: Any,
) -> Result:
    """Decode by kernel and reference, and assert that the results are equal bit for bit.

    :param lines: the messages in another form, for the kernel.
    :param of_task: other attributes of :class:`ReadTask`: ``schemas``, ``event_filter``.
    :returns: the kernel's result.
    """
    how: dict[str, Any] = {"inferred": inferred, "as_lists": as_lists, **of_task}
    expected = read(messages, schema, options, by_kernel=False, **how)
    actual = read(messages if lines is None else lines, schema, options, by_kernel=True, **how)
    _expect_same("error", actual.error, expected.error)
    _expect_same("rows of each message", actual.rows_of_messages, expected.rows_of_messages)
    if not actual.rows.equals(expected.rows):
        _expect_same("number of rows", actual.rows.num_rows, expected.rows.num_rows)
        for name in expected.rows.column_names:
            both = actual.rows[name].to_pylist(), expected.rows[name].to_pylist()
            for at, (own, other) in enumerate(zip(*both, strict=True)):
                # Compared as texts, as NaN differs from itself and -0.0 equals 0.0.
                if repr(own) != repr(other):
                    raise AssertionError(_difference(f"{name} of row {at}", own, other))
        expect("nan" in repr(expected.rows.to_pylist()), "equal as Python values only")
    if expected.error is None:
        _expect_same("counts", actual.counts, expected.counts)
        _expect_same("skipped messages", actual.skipped, expected.skipped)
    return actual


def _expect_same(what: str, actual: object, expected: object) -> None:
    expect(actual == expected, _difference(what, actual, expected))


def _difference(what: str, actual: object, expected: object) -> str:
    return f"{what}: {_shown(actual)} by the kernel, {_shown(expected)} by the decoder"


def _shown(value: object) -> str:
    if isinstance(value, dict) and value.keys() == {"value", "metadata"}:
        return VariantVal(value["value"], value["metadata"]).toJson()
    return repr(value)


_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_REASONS = 5
# Keeps the check of a format within seconds.
_MAX_MESSAGES = 100
_MAX_TABLES = 2
_MAX_OF_OPTIONS = 10
_OPTIONS: tuple[dict[str, str], ...] = (
    {"incompleteRows": "emit"},
    {"images": "after", "invalidValues": "text", "onSchemaChange": "ignore"},
)
_EVENT_OPTIONS: tuple[dict[str, str], ...] = (
    {"imageFormat": "json", "includeColumns": "true"},
    {"images": "after"},
)


def check_kernel(subject: Subject) -> None:
    """Assert that the kernel, with the layouts of `open_layouts`, gives the decoder's rows.

    Reads the tables of each case, with all and with some columns, and the events, under several
    options, those of the format among them; damaged messages are among the good ones.

    :raises NotChecked: if the kernel is not installed.
    """
    if not is_installed():
        raise NotChecked(
            "NOT CHECKED: cdcfmt-kernel, which reads by open_layouts, is not installed"
        )
    defaults = {each.name: each.default for each in subject.spec.options}
    layouts = layouts_of(subject.spec, defaults)
    by_schema = writer_layouts_of(subject.spec, defaults)
    expect(layouts or by_schema, "open_layouts returns no layout for the options' defaults")
    by_kernel: Counter[str] = Counter()
    refusals: dict[str, str] = {}
    coverage = Coverage()
    for number, case in enumerate(subject.cases):
        messages = case.messages[:_MAX_MESSAGES]
        damaged = damaged_messages(messages)
        for place, (schema, options, inferred) in enumerate(
            _reads(subject, case, messages, number)
        ):
            # The damaged messages include the good ones.
            for some in (damaged,) if place else (messages, damaged):
                result = _check(some, schema, options, inferred=inferred)
                what = "rows" if options.table else "events"
                by_kernel[what] += result.by_kernel
                if result.refusal is not None:
                    refusals.setdefault(what, result.refusal)
        coverage.add(subject, case, number)
    _check_options(subject)
    print(coverage.report())
    has_events = by_schema is not None or any(each.extra for each in layouts)
    for what in ("rows", "events") if has_events else ("rows",):
        expect(
            by_kernel[what],
            f"open_layouts promises {what} for the kernel, but the kernel reads no message of the "
            f"cases; the first refusal: {refusals.get(what, 'none')}",
        )
    expect(
        not coverage.values,
        "the kernel refuses messages that fit the layout, for a value that the decoder reads: give "
        f"the column another value encoding. {coverage.wrong()}\n{coverage.report()}",
    )
    if any(each.extra for each in layouts):
        _check_operations(subject, {op for each in layouts for op in each.ops.values()})


@attrs.define
class Coverage:
    """How many ordinary messages of rows the kernel reads once it knows their schemas.

    A message is ordinary if the decoder reads it without errors and values that their types
    cannot hold.
    """

    _read: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    _all: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    _refused: dict[tuple[str, str], Counter[str]] = attrs.field(factory=dict)
    values: list[str] = attrs.field(factory=list)

    def add(self, subject: Subject, case: Case, number: int) -> None:
        """Count the messages of a case, by operation."""
        messages = case.messages[:_MAX_MESSAGES]
        decoded = subject.decode(attrs.evolve(case, messages=messages))
        copies = [attrs.evolve(message) for message in messages]
        events = {id(copy): of for copy, of in zip(copies, decoded, strict=True)}
        ops = {key: op for key, of in events.items() if (op := _op_of(of))}
        for schema, options, inferred in _reads(subject, case, messages, number):
            result = read([*messages, *copies], schema, options, by_kernel=True, inferred=inferred)
            is_last = options.table is None
            for refusal in result.refusals:
                op = ops.get(id(refusal.message))
                if op is None:
                    continue
                if _is_wrong(refusal, events[id(refusal.message)]):
                    self.values.append(refusal.text)
                if is_last:
                    place = case.name, op
                    self._refused.setdefault(place, Counter())[refusal.text] += 1
                    self._read[place] -= 1
            if is_last:
                for op in ops.values():
                    self._all[case.name, op] += 1
                    self._read[case.name, op] += 1

    def wrong(self) -> str:
        """The first refusals for a value that the decoder reads."""
        return "; ".join(list(dict.fromkeys(self.values))[:_MAX_REASONS])

    def report(self) -> str:
        """One line for each case and operation, each followed by the reasons of refusals."""
        lines = []
        for place, count in self._all.items():
            name, op = place
            lines.append(f"{name}: {op}: {self._read[place]} of {count} messages by the kernel")
            reasons = self._refused.get(place, Counter()).most_common(_MAX_REASONS)
            lines += [f"    {refused} refused: {reason}" for reason, refused in reasons]
        return "\n".join(lines)


def _is_wrong(refusal: Refusal, events: Sequence[Event]) -> bool:
    """Whether the kernel should have read the message: all values of the column are ordinary.

    The decoder, or the policy of the read, changes and counts the others.
    """
    if not refusal.is_value:
        return False
    for event in events:
        assert isinstance(event, RowChange)
        for image in filter(None, (event.before, event.after)):
            value = image.values.get(refusal.column, "")
            if value is None or isinstance(value, InvalidValue):
                return False
            if isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
                return False
            of = next((each for each in event.table.columns if each.name == refusal.column), None)
            is_json = of is not None and isinstance(of.type, Json) and isinstance(value, str)
            if is_json and isinstance(parse_json_column(value), KeepText):
                return False
    return True


def _op_of(events: Sequence[Event]) -> str | None:
    """The operation of an ordinary message's rows; None for other messages."""
    ops = set()
    for event in events:
        if not isinstance(event, RowChange):
            return None
        images = [image for image in (event.before, event.after) if image is not None]
        if any(isinstance(v, InvalidValue) for image in images for v in image.values.values()):
            return None
        ops.add(event.op)
    return " and ".join(sorted(ops)) or None


def _check_operations(subject: Subject, ops: Iterable[Op]) -> None:
    """Assert that the kernel reads some message of each operation that the cases have."""
    refusals: dict[Op, str | None] = {}
    for case in subject.cases:
        messages = case.messages[:_MAX_MESSAGES]
        decoded = subject.decode(attrs.evolve(case, messages=messages))
        options = parsed({"protocol": subject.spec.name, **case.options, "images": "after"})
        for op in ops:
            found = zip(messages, decoded, strict=True)
            some = [each for each, events in found if op in {getattr(e, "op", "") for e in events}]
            if some and refusals.get(op, "") is not None:
                # A message shows its schema to the kernel when it is first read.
                both = [
                    read([*messages, *more], events_schema(options), options, by_kernel=True)
                    for more in (some, [*some, *some])
                ]
                is_read = both[1].by_kernel > both[0].by_kernel
                refusals[op] = None if is_read else both[1].refusal or "none"
    for op, refusal in refusals.items():
        expect(
            refusal is None,
            f"`ops` have {op}, but the kernel reads no event {op} of the cases for images=after: "
            f"leave it out, or add an ordinary one to the cases; the first refusal: {refusal}",
        )


def _check(messages: Sequence[Message], *how: Any, inferred: bool) -> Result:
    """As :func:`check_equal`; an error shows the first message with a difference."""

    def difference(count: int) -> str:
        try:
            check_equal(messages[:count], *how, inferred=inferred)
        except AssertionError as error:
            return str(error)
        return ""

    try:
        return check_equal(messages, *how, inferred=inferred)
    except AssertionError:
        count = bisect_left(range(len(messages)), 1, key=lambda count: bool(difference(count)))
        raise AssertionError(f"{difference(count)}; {messages[count - 1]!r:.2000}") from None


def _check_options(subject: Subject) -> None:
    """Assert the same under every value of the format's options, each alone.

    An option that only the decoder knows would have no effect on what the kernel reads.
    """
    some = [(case, case.messages[:_MAX_OF_OPTIONS]) for case in subject.cases]
    some += [(sample.case, (sample.message,)) for sample in subject.samples]
    by_options: dict[frozenset[tuple[str, str]], list[Message]] = {}
    for case, its_messages in some:
        by_options.setdefault(frozenset(case.options.items()), []).extend(its_messages)
    for option, (given, messages) in product(subject.spec.options, by_options.items()):
        # Twice, since the kernel knows tables only after the decoder has read a row of them.
        messages = [*messages, *messages]
        for value in values_of(option):
            options = {"protocol": subject.spec.name, **_EVENT_OPTIONS[0], **dict(given)}
            parsed_options = parsed({**options, option.name: value})
            try:
                _check(messages, events_schema(parsed_options), parsed_options, inferred=False)
            except AssertionError as error:
                raise AssertionError(f"with {option.name}={value}: {error}") from error


def _reads(
    subject: Subject, case: Case, messages: Sequence[Message], number: int
) -> Iterator[tuple[StructType, ReadOptions, bool]]:
    """Schemas and options for reading a case, and whether the schema was inferred."""
    given = {"protocol": subject.spec.name, **case.options}
    tables = _tables(subject, case)
    for place, table in enumerate(tables):
        options = parsed({**given, "table": table, **_OPTIONS[place % len(_OPTIONS)]})
        schema = inferred_schema(messages, options)
        if schema is None:
            continue
        yield schema, options, True
        if place == 0:
            added = {field.name for field in metadata_fields(options)}
            own = [field.name for field in schema.fields if field.name not in added]
            dropped = set(own[1::2])
            yield StructType([f for f in schema.fields if f.name not in dropped]), options, False
    if tables:
        options = parsed({**given, **_EVENT_OPTIONS[number % len(_EVENT_OPTIONS)]})
        yield events_schema(options), options, False


def _tables(subject: Subject, case: Case) -> list[str]:
    """The tables with the most rows; the option `table` cannot name one without a database."""
    rows = Counter(
        event.table.name
        for events in subject.decode(attrs.evolve(case, messages=case.messages[:_MAX_MESSAGES]))
        for event in events
        if isinstance(event, RowChange) and all(event.table.name)
    )
    return [table_option(*name) for name, _ in rows.most_common(_MAX_TABLES)]
