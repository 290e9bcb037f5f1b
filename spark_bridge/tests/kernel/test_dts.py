"""DTS records by the compiled kernel: the same rows as the reference for any input."""

from __future__ import annotations

import itertools
import random
from typing import Any

import attrs
import pytest
from dts_records import COLUMNS, PARTS, encode, parts, record, row, usual
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kernel.test_golden import OF_EVENTS, OPTIONS
from pyspark.sql.types import StructType
from support.damaged_messages import with_other_bytes
from support.examples import examples
from support.golden_data import native_messages
from support.golden_encoding import open_encoder

from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.types import Vector
from cdcfmt_dts_avro.record import read_envelope
from cdcfmt_testing import Carries, without
from cdcfmt_testing.strategies import row_changes
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

WIDE = {"protocol": "dts-avro", "table": "shop.wide"}


def golden() -> list[Message]:
    return [attrs.evolve(m, offset=at) for at, m in enumerate(native_messages("dts/dts"))]


@pytest.mark.parametrize("extra", OPTIONS)
def test_golden_messages(extra: dict[str, str]) -> None:
    messages = golden() * 2
    options = parsed({**WIDE, **extra})
    schema = inferred_schema(messages, options)
    assert schema is not None
    check_equal(messages, schema, options)


@pytest.mark.parametrize("form", ["json", "variant"])
@pytest.mark.parametrize("extra", [*OF_EVENTS, {"images": "none"}, {"includeColumns": "true"}])
def test_golden_events(extra: dict[str, str], form: str) -> None:
    messages = golden() * 2
    options = parsed({"protocol": "dts-avro", "imageFormat": form, **extra})
    check_equal(messages, events_schema(options), options)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_messages(seed: int) -> None:
    chance = random.Random(seed)
    messages = golden()
    mixed = messages + [
        attrs.evolve(message, value=with_other_bytes(message.value or b"", chance))
        if chance.random() < 0.5
        else message
        for message in messages * 2
    ]
    own = {"protocol": "auto"} if seed % 2 else {}
    options = parsed({**WIDE, **own, **chance.choice(OPTIONS)})
    schema = inferred_schema(messages, options)
    assert schema is not None
    check_equal(mixed, schema, options)
    some = StructType(chance.sample(schema.fields, chance.randrange(1, len(schema.fields))))
    check_equal(mixed, some, options, inferred=False, as_lists=True)
    form = chance.choice(["json", "variant"])
    options = parsed({"protocol": "dts-avro", "imageFormat": form, **chance.choice(OF_EVENTS)})
    check_equal(mixed, events_schema(options), options)


# Records by hand


def check(*messages: Message, **options: str) -> tuple[int, int]:
    """How many messages went by the kernel, and how many did not."""
    some = [attrs.evolve(message, offset=at) for at, message in enumerate(messages)]
    shape = parsed({"protocol": "dts-avro", "imageFormat": ("json", "variant")[len(some) % 2]})
    check_equal(some, events_schema(shape), shape)
    shape = parsed({"protocol": "dts-avro", "images": "none"})
    check_equal(some, events_schema(shape), shape)
    asked = parsed({"protocol": "dts-avro", "table": "d.t", **options})
    schema = inferred_schema(some, asked)
    assert schema is not None
    check_equal(some, StructType(schema.fields[1::3]), asked, inferred=False)
    result = check_equal(some, schema, asked)
    return result.by_kernel, result.by_reference


def test_kernel_reads_rows_and_operations() -> None:
    rows = [usual(at, ("INSERT", "UPDATE", "DELETE", "INIT")[at % 4]) for at in range(40)]
    assert check(*rows) == (39, 1)
    nulls = usual(0, after=dict.fromkeys(list(COLUMNS)[1:]))
    assert check(nulls, *rows[:10], nulls)[0] >= 10
    assert check(*rows[:5], usual(0, born=1_700_000_000), usual(0, born=0), *rows[:5]) == (11, 1)
    of_milliseconds = usual(0, sourceTimestamp=1_700_000_000_123)
    assert check(*rows[:5], of_milliseconds, of_milliseconds, *rows[:5]) == (10, 2)
    assert check(*rows[:5], usual(0, objectName="d.other"), *rows[:5]) == (9, 1)


def test_times_of_the_source() -> None:
    rows = [usual(at, sourceTimestamp=1_700_000_000 + at) for at in range(40)]
    # 2023-11-14 22:13:20 is 1700000000.
    end = {"endingSourceTime": "2023-11-14T22:13:30Z"}
    options = parsed({"protocol": "dts-avro", "imageFormat": "json", **end})
    result = check_equal(rows, events_schema(options), options)
    assert (result.rows.num_rows, result.skipped, result.by_kernel) == (10, 30, 9)


UNUSUAL: list[dict[str, Any]] = [
    {"objectName": "d.s.t"},
    {"objectName": "d.d.t"},
    {"objectName": "t"},
    {"objectName": "d."},
    {"objectName": "d\\u002E.t"},
    {"objectName": None},
    {"operation": "FILL"},
    {"sourceTimestamp": -1},
    {"tags": {}},
    {"tags": {"pk_uk_info": "nothing"}},
    {"tags": {"pk_uk_info": '{"PRIMARY":["name"]}'}},
    {"processTimestamps": [1, 2]},
    {"processTimestamps": []},
    {"version": 3},
    {"source": {"sourceType": "Oracle", "version": ""}},
    {"source": {"sourceType": "PostgreSQL", "version": "14"}},
    {"beforeImages": []},
    {"beforeImages": ""},
    {"afterImages": ""},
    {"afterImages": None},
    {"fields": None},
    {"fields": ""},
    {"born": 5},
    {"born": -5},
    {"after": {"id": ("EmptyObject", "NULL"), "name": ("EmptyObject", "NONE")}},
]


@pytest.mark.parametrize("changes", UNUSUAL)
@pytest.mark.parametrize("operation", ["INSERT", "UPDATE"])
def test_unsupported_envelope_falls_back(changes: dict[str, Any], operation: str) -> None:
    some = [usual(at, operation) for at in range(4)]
    odd = usual(0, operation, **changes)
    check(*some, odd, *some, odd, *some)
    check(*some, odd, *some, images="after")


def test_repeated_database_is_not_a_mysql_schema() -> None:
    rows = [usual(at, objectName=("d.t", "d.d.t")[at % 2]) for at in range(6)]
    rows = [attrs.evolve(message, offset=at) for at, message in enumerate(rows)]
    options = parsed({"protocol": "dts-avro", "table": "d.t"})
    schema = inferred_schema(rows, options)
    assert schema is not None
    result = check_equal(rows, schema, options)
    assert (result.rows.num_rows, result.skipped) == (6, 0)
    other = parsed({"protocol": "dts-avro", "table": "d.d.t"})
    assert check_equal(rows, schema, other).skipped == 6


def test_dates_with_and_without_a_clock() -> None:
    """Each value of a date's number has the type of its own parts, whatever came before it."""
    date = {"year": 2024, "month": 1, "day": 2}
    midnight = date | dict.fromkeys(("hour", "minute", "second", "millis"), 0)
    values = [parts(**date), parts(**midnight), parts(**midnight | {"hour": 5})]
    for number in (10, 91):
        rows = [Message(None, encode(record(**row(number, value)))) for value in values]
        for order in itertools.permutations(rows):
            check(*order, *order, rows[0], rows[0])


NUMBERS = (
    st.none() | st.integers(-3, 70) | st.sampled_from([1970, 2024, 9999, 838, 10**6, -(2**31)])
)
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["0", "-1", "+5", "007", "1.5", "1E+3", "NaN", "2155", "18446744073709551615", "9" * 40, "true"]
)
KINDS = st.sampled_from(["enum", "set", "json", "blob", "binary", "text", "uuid", "point", ""])
CHARSETS = st.sampled_from(["utf8mb4", "utf8", "latin1", "binary", "", "gbk", "nowhere", "UTF-8"])
SMALL = st.integers(0, 70)
PART = st.fixed_dictionaries(dict.fromkeys(PARTS, NUMBERS))
VALUES = st.one_of(
    st.none(),
    st.sampled_from(["NULL", "NONE"]).map(lambda symbol: ("EmptyObject", symbol)),
    st.builds(lambda p, v: ("Integer", {"precision": p, "value": v}), SMALL, TEXTS),
    st.builds(
        lambda c, v: ("Character", {"charset": c, "value": v}),
        CHARSETS,
        st.binary(max_size=6) | TEXTS.map(str.encode),
    ),
    st.builds(
        lambda v, p, s: ("Decimal", {"value": v, "precision": p, "scale": s}), TEXTS, SMALL, SMALL
    ),
    st.builds(
        lambda v, p: ("Float", {"value": v, "precision": p, "scale": 0}),
        st.floats(allow_nan=False),
        SMALL,
    ),
    st.builds(
        lambda t, m: ("Timestamp", {"timestamp": t, "millis": m}),
        st.integers(-(2**62), 2**62) | st.integers(0, 2**31),
        st.integers(-1, 10**6),
    ),
    PART.map(lambda parts: ("DateTime", parts)),
    st.builds(
        lambda parts, zone: ("TimestampWithTimeZone", {"value": parts, "timezone": zone}),
        PART,
        st.sampled_from(["+08:00", "Europe/Berlin", "", "Nowhere"]),
    ),
    st.builds(lambda k, v: ("BinaryObject", {"type": k, "value": v}), KINDS, st.binary(max_size=9)),
    st.builds(lambda k, v: ("TextObject", {"type": k, "value": v}), KINDS, TEXTS),
    st.builds(
        lambda k, v: ("BinaryGeometry", {"type": k, "value": v}), KINDS, st.binary(max_size=30)
    ),
    st.builds(lambda k, v: ("TextGeometry", {"type": k, "value": v}), KINDS, TEXTS),
)


@settings(
    deadline=None, max_examples=examples(60), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
@given(data=st.data())
def test_values_equal_the_reference(data: st.DataObject) -> None:
    columns = st.sampled_from(sorted(COLUMNS))
    odd = st.dictionaries(columns, VALUES, max_size=2)
    messages = [usual(0)]
    for at in range(1, 12):
        operation = data.draw(st.sampled_from(["INSERT", "UPDATE"]))
        messages.append(usual(at, operation, before=data.draw(odd), after=data.draw(odd)))
    check(*messages, **data.draw(st.sampled_from(OPTIONS)))


CARRIES = Carries(types=without(Vector), times=frozenset({"source_time"}), time_unit=1_000_000)


@settings(deadline=None, max_examples=examples(30), phases=[Phase.reuse, Phase.generate])
@given(row_changes(CARRIES), st.sampled_from(OPTIONS))
def test_arbitrary_rows(events: list[RowChange], extra: dict[str, str]) -> None:
    encoder = open_encoder("dts-avro")
    values = [message.value or b"" for event in events * 4 for message in encoder.encode(event)]
    messages = [Message(None, value, offset=at) for at, value in enumerate(values)]
    table = table_option(events[0].table.database, events[0].table.table)
    options = parsed({"protocol": "dts-avro", "table": table, **extra})
    schema = inferred_schema(messages, options)
    assert schema is not None
    check_equal(messages, schema, options)
    for form in ("json", "variant"):
        options = parsed({"protocol": "dts-avro", "imageFormat": form})
        check_equal(messages, events_schema(options), options)


def test_excluded_table_is_read_up_to_its_name() -> None:
    """Errors there are ignored by both ways."""
    messages = golden()
    values = [message.value or b"" for message in messages]
    place, end = next(
        (at, read_envelope(value).end)
        for at, value in enumerate(values)
        if b"shop.wide" in value and value[read_envelope(value).end]
    )
    value = values[place][:end] + b"\0" + values[place][end + 1 :]
    odd = attrs.evolve(messages[place], value=value)
    options = parsed({"protocol": "dts-avro", "table": "`库`.`表`"})
    schema = inferred_schema(messages, options)
    assert schema is not None
    result = check_equal([*messages, odd, odd], schema, options)
    assert result.counts == check_equal(messages, schema, options).counts
