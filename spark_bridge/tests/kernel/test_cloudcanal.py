"""CloudCanal Json by the compiled kernel: the same rows as the reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kernel.test_canal_json import TEXT, USUAL
from pyspark.sql.types import StructType
from support.examples import examples

from cdcfmt_core.events import Message
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

VALUES = st.one_of(
    TEXT,
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.just({"a": [1, None]}),
)
OPTIONS = (
    {"sourceTimeZone": "Europe/Berlin"},
    {"binaryEncoding": "latin1", "jsonAs": "string", "timeAs": "interval", "images": "after"},
    {"binaryEncoding": "base64", "timeAs": "micros", "splitKeyUpdates": "true"},
    {"binaryEncoding": "hex", "includeSource": "true", "protocol": "auto"},
    {"sourceDatabase": "other", "enumAs": "index"},
)

_OF_CHANGES = ("table", "jsonAs", "timeAs", "enumAs", "includeSource")
BYTES = {"auto": "\u00e9", "latin1": "\u00e9", "base64": "AP8=", "hex": "00ff"}


def update(at: int, types: dict[str, str], new: Any, old: Any, **members: Any) -> Message:
    wire = {
        **DML,
        "action": "UPDATE",
        "dbValType": types,
        "jdbcType": dict.fromkeys(types, 12),
        "pks": ["id"],
        "before": [old],
        "data": [new],
        **members,
    }
    return Message(None, json.dumps(wire, separators=(",", ":")).encode(), offset=at)


def compare(messages: list[Message], options: dict[str, str], usual: int = 1) -> Any:
    given_ = {"protocol": "cloudcanal-json", "table": "db_test.table_test", **options}
    read = parsed(given_)
    schema = inferred_schema(messages[:usual], read)
    assert schema is not None
    some = StructType(schema.fields[1::3])
    check_equal(messages, some, read, inferred=False, as_lists=True)
    form = "json" if read["images"] == "both" else "variant"
    events = {name: value for name, value in given_.items() if name not in _OF_CHANGES}
    shape = parsed({**events, "imageFormat": form})
    check_equal(messages, events_schema(shape), shape)
    return check_equal(messages, schema, read)


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_values_equal_the_reference(options: dict[str, str], data: st.DataObject) -> None:
    types = {f"c{at}": type_ for at, type_ in enumerate(USUAL)} | {"id": "int"}
    usual = {f"c{at}": value for at, value in enumerate(USUAL.values())} | {"id": "1"}
    written = BYTES[options.get("binaryEncoding", "auto")]
    binary = [name for name, type_ in types.items() if type_.startswith(("binary", "varb", "blob"))]
    usual |= dict.fromkeys(binary, written)
    messages = [update(0, types, usual, usual)]
    columns = st.sampled_from(sorted(types))
    for at in range(1, 15):
        some = data.draw(st.dictionaries(columns, VALUES, max_size=2))
        old = data.draw(st.dictionaries(columns, VALUES, max_size=2))
        messages.append(update(at, types, usual | some, usual | old))
    result = compare(messages, options)
    assert result.by_kernel + result.by_reference == len(messages)


def test_kernel_reads_rows_and_operations() -> None:
    types = {"id": "int", "a": "varchar(9)", "raw": "varbinary(3)"}
    messages = []
    for at in range(40):
        row = {"id": at, "a": str(at), "raw": "AP8="}
        action = ("INSERT", "UPDATE", "DELETE")[at % 3]
        before = [row, row] if action == "UPDATE" else []
        shuffled = dict(sorted(types.items(), key=lambda item: hash((item, at))))
        data = [row, row | {"a": None}]
        messages.append(update(at, shuffled, {}, {}, action=action, data=data, before=before))
        messages.append(update(at, types, row, row, table="other"))
    result = compare(messages, {})
    assert (result.by_kernel, result.by_reference) == (39, 1)
    assert result.skipped == 40
    assert result.rows.num_rows == 2 * 14 + 4 * 13 + 2 * 13


UNUSUAL: list[dict[str, Any]] = [
    {"action": "update"},
    {"action": "DELETE", "data": []},
    {"action": "DELETE", "before": None},
    {"action": "ALTER", "isDdl": True},
    {"action": "INSERT", "before": None},
    {"action": None, "entryType": "TRANSACTIONEND", "data": [], "before": []},
    {"entryType": "TRANSACTIONEND"},
    {"entryType": "TRANSACTIONEND", "table": "other"},
    {"entryType": ""},
    {"entryType": None},
    {"isDdl": "no"},
    {"ddl": True},
    {"ddl": False},
    {"schema": ""},
    {"schema": "elsewhere"},
    {"schema": "elsewhere", "table": "other"},
    {"schema": None},
    {"db": None},
    {"table": ""},
    {"pks": None},
    {"pks": "id"},
    {"dbValType": None},
    {"dbValType": {"id": "int"}},
    {"jdbcType": {"id": 4, "a": -5}},
    {"execTs": None},
    {"execTs": "1669789152000"},
    {"execTs": 10**18},
    {"sendTs": -1},
    {"sql": "UPDATE t"},
    {"bid": "7"},
    {"tableChanges": []},
    {"another": 1},
    {"data": None},
    {"data": [{"id": 1}]},
    {"data": [{"id": 1, "a": "5", "b": 1}]},
    {"data": [{"id": 1, "a": 5}, {"id": 1, "a": 5}]},
    {"before": []},
    {"before": [None]},
    {"before": [{"id": 1}]},
    {"before": [{"id": 1, "a": "4", "c": "x"}]},
    {"before": {"id": 1}},
]


@pytest.mark.parametrize("members", UNUSUAL)
@pytest.mark.parametrize("options", [{}, {"splitKeyUpdates": "true", "incompleteRows": "emit"}])
def test_unsupported_envelope_falls_back(members: dict[str, Any], options: dict[str, str]) -> None:
    types = {"id": "int", "a": "varchar(9)"}
    messages = [update(at, types, {"id": 1, "a": "5"}, {"id": 1, "a": "4"}) for at in range(6)]
    messages[2] = update(2, types, {"id": 1, "a": "5"}, {"id": 1, "a": "4"}, **members)
    messages[4] = messages[2]
    compare(messages, options)
    compare([messages[0], Message(None, json.dumps(DDL_EXAMPLE).encode()), *messages], options)
