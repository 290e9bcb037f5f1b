"""Types of Debezium's connectors beyond TiDB's, by the compiled kernel: as the reference writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.framed_data import framed_messages
from support.golden_data import native_messages
from support.written_rows import Rows, change_rows, decoded, event_rows, sent

from cdcfmt_core import types
from cdcfmt_core.events import Column, Message, RowChange
from cdcfmt_core.opening import open_encoder
from cdcfmt_testing.carries import Carries
from cdcfmt_testing.strategies import event_lists

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

GIVEN = {
    "protocol": "debezium",
    "synthesizeCommitTs": "true",
    "ordered": "false",
    "unsupportedEvents": "skip",
    "unsupportedValues": "skip",
}
FORMS = {"with schema": {}, "without schema": {"debeziumDisableSchema": "true"}}
POSTGRES = {
    "schema_default": {},
    "schema_adaptive_micros": {},
    "schema_micros_avronames": {"binaryHandlingMode": "base64"},
    "schema_strings": {"binaryHandlingMode": "hex"},
}
MARIADB = ("schema_default", "noschema_strings")


def check(rows: Rows, **options: str) -> int:
    """Write the rows both ways, and compare the messages; how many the kernel wrote."""
    expected, _ = sent(rows, by_kernel=False, partitions=2, **options)
    found, by_kernel = sent(rows, by_kernel=True, partitions=2, **options)
    for one, other in zip(found, expected, strict=False):
        assert one == other
    assert len(found) == len(expected)
    return by_kernel


@pytest.fixture(autouse=True)
def each_row_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the reference writes some rows after each that the kernel refuses."""
    monkeypatch.setattr("pyspark_cdcfmt.write.columnar.MAX_AT_ONCE", 1)


def read(path: str) -> Sequence[Message]:
    if not path.startswith("postgres"):
        return [*native_messages(path)]
    # The tables of infinities and of years before 1.
    return [each for each in framed_messages(path) if "special" not in (each.topic or "")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("path", "reading"),
    [
        *((f"postgres/{folder}", reading) for folder, reading in POSTGRES.items()),
        *((f"debezium/{folder}", {"sourceTimeZone": "Asia/Shanghai"}) for folder in MARIADB),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_events(path: str, reading: dict[str, str], form: str) -> None:
    events, found = decoded(read(path), protocol="debezium", **reading)
    changes = [pair for pair in events if isinstance(pair[1], RowChange)]
    by_kernel = check(event_rows(changes, found), **GIVEN, **FORMS[form])
    assert by_kernel > len(changes) * 0.6, (by_kernel, len(changes))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", ["t_num", "t_time", "t_array2", "t_misc", "t_text"])
def test_changes(table: str, form: str) -> None:
    messages = [
        message
        for message in framed_messages("postgres/schema_default")
        if (message.topic or "").endswith(f".{table}")
    ]
    rows, _ = change_rows(messages, ("cdc", "public", table), protocol="debezium")
    named = {"table": f"cdc.public.{table}", "keyColumns": '["id"]'}
    by_kernel = check(rows, **GIVEN, **FORMS[form], **named)
    count = sum(batch.num_rows for batch in rows.batches)
    assert by_kernel > count / 2, (by_kernel, count)


LEAVES = (
    types.Bool(),
    types.Int(16),
    types.Int(64),
    types.Int(64, signed=False),
    types.Float(32),
    types.Float(64),
    types.Decimal(10, 2),
    types.Decimal(),
    types.Text(),
    types.Binary(),
    types.Bit(10),
    types.Date(),
    types.DateTime(6),
    types.Timestamp(6),
    types.Time(6),
    types.Year(),
    types.Json(),
    types.Enum(("a", "b")),
    types.Uuid(),
    types.TimeTz(),
    types.Interval(),
    types.Interval(months=False, days=False),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from("abc_<"), min_size=1, max_size=3, unique=True)
    fields = names.flatmap(lambda all_: st.tuples(*(st.tuples(st.just(n), inner) for n in all_)))
    return (
        inner.map(types.Array)
        | inner.map(lambda value: types.Map(types.Text(), value))
        | fields.map(types.Struct)
    )


TYPES = _nested(st.recursive(st.sampled_from(LEAVES), _nested, max_leaves=4)) | st.sampled_from(
    LEAVES
)


@settings(deadline=None, max_examples=examples(60), phases=[Phase.generate])
@given(st.data())
def test_generated(data: st.DataObject) -> None:
    carries = Carries(
        types=(types.Int(32), *data.draw(st.lists(TYPES, min_size=1, max_size=4))),
        column=lambda name, logical, key: Column(name, "", logical, key=key),
        kinds=frozenset({"row"}),
        invalid_dates=False,
    )
    encoder = open_encoder("debezium", {"unsupportedValues": "skip"})
    drawn: list[Any] = data.draw(event_lists(carries))
    messages = [message for event in drawn for message in encoder.encode(event)]
    events, found = decoded(messages, protocol="debezium")
    form = FORMS[data.draw(st.sampled_from(list(FORMS)))]
    check(event_rows(events, found), **GIVEN, **form)
    table = drawn[0].table
    # A table with the name of an added column is an error of the options: `metadataPrefix`.
    assume(not any(name.startswith("_") for name in table.column_names))
    place = table.database, *((table.schema,) if table.schema else ()), table.table
    rows, _ = change_rows(messages, place, protocol="debezium", caseSensitive="true")
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in place)
    check(rows, **GIVEN, **form, table=quoted, keyColumns=json.dumps(table.key_columns))
