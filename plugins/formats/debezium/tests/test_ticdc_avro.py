"""TiCDC's debezium-avro against the truth: every event, column, value and type."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import (
    GOLDEN,
    Loss,
    Losses,
    Truth,
    python_value,
    read_jsonl,
    same,
)

from cdcfmt_core.events import Event, RowChange, SchemaChange, Watermark
from cdcfmt_core.types import Bit, Decimal, Enum, InvalidValue, Set
from cdcfmt_mysql import resolve_type

ROOT = "ticdc_avro/debezium-avro"
VARIANTS = sorted(path.name for path in (GOLDEN / ROOT).iterdir())

# --- What the wire does not carry ------------------------------------------------------

DEFAULTS: dict[str, Any] = {"i": 7, "v": "def", "vb": b"bdef", "b": 5}
"""The replacement of NULL in a column with a default."""
_NULL = "NULL is encoded as the column's default"
NULLS = [
    *(Loss("golden.defaults_t", column, "null", _NULL) for column in DEFAULTS),
    Loss("golden.default_varbinary", "vb", "null", _NULL),
]
_ZERO = "a zero date is null, or 1970 where the column is NOT NULL or a timestamp"
_CENTURY = "a year below 100 gets a century"
DATES = [
    *(Loss("golden.zero_dates", c, "zero", _ZERO) for c in ("d", "d_nn", "dt", "dt_nn", "dt6")),
    *(Loss("golden.zero_dates", c, "zero", _ZERO) for c in ("ts", "ts_nn")),
    *(Loss("golden.zero_dates", c, "century", _CENTURY) for c in ("d", "d_nn", "dt", "dt_nn")),
    Loss("golden.zero_dates", "dt6", "century", _CENTURY),
]
LOSSES = [*NULLS, *DATES]


def decode_variant(name: str) -> tuple[dict[str, Any], list[tuple[Truth, str, Event]]]:
    """The configuration, and each event with its truth and the message's kind."""
    folder = f"{ROOT}/{name}"
    meta = json.loads((GOLDEN / folder / "meta.json").read_text(encoding="utf-8"))
    truth = {each["seq"]: each for each in read_jsonl(f"ticdc_avro/{meta['truth']}")}
    decoder = framed_decoder("debezium", folder)
    found = []
    lines = read_jsonl(f"{folder}/messages.jsonl.gz")
    for line, message in zip(lines, framed_messages(folder), strict=True):
        (event,) = decoder.decode(message)
        (seq,) = line["events"]
        found.append((truth[seq], line["type"], event))
    return meta["config"], found


@pytest.mark.parametrize("name", VARIANTS)
def test_every_event_equals_the_truth(name: str) -> None:
    config, found = decode_variant(name)
    losses = Losses(LOSSES, {f"{t.get('schema')}.{t.get('table')}" for t, _, _ in found})
    cells = Counter[str]()
    for truth, kind, event in found:
        assert event.commit_ts == truth["commit_ts"]
        assert event.source_time == (truth["commit_ts"] >> 18) * 1000
        if isinstance(event, SchemaChange):
            assert truth["kind"] == kind == "ddl"
            assert event.query == truth["query"]
            continue
        if isinstance(event, Watermark):
            assert truth["kind"] == kind == "watermark"
            continue
        assert isinstance(event, RowChange)
        assert event.op == truth["op"]
        assert (event.table.database, event.table.table) == (truth["schema"], truth["table"])
        _check_columns(config, truth, event)
        for side, image in (("old", event.before), ("new", event.after)):
            exists = any(side in column for column in truth["columns"])
            if side == "old" and event.op == "update" and not config["debezium-output-old-value"]:
                exists = False
            assert (image is not None) == exists
            if image is None:
                continue
            assert image.complete
            assert list(image.values) == [column["name"] for column in truth["columns"]]
            for column in truth["columns"]:
                actual = image.values[column["name"]]
                _check_value(config, truth, column, column[side], actual, losses)
                cells["cells"] += 1
    assert cells["cells"] > 50
    if name in ("default", "tidb-extension", "string-modes-extension"):
        losses.assert_all_seen("null", "zero", "century")


def _check_columns(config: Any, truth: Truth, event: RowChange) -> None:
    handle = [column["name"] for column in truth["columns"] if "handle" in column["flags"]]
    assert list(event.table.key_columns) == handle
    for column, true in zip(event.table.columns, truth["columns"], strict=True):
        assert column.name == true["name"]
        if not config["enable-tidb-extension"]:
            continue
        full = resolve_type(true["type"])
        base = re.sub(r"\(.*\)", "", true["type"]).replace(" zerofill", "")
        base = base.replace("decimal unsigned", "decimal")
        has_parameters = isinstance(full, Bit | Decimal | Enum | Set) and (
            config["avro-decimal-handling-mode"] == "precise" or not isinstance(full, Decimal)
        )
        if has_parameters:
            assert column.type == full
            # TiCDC's type has no sign.
            base = re.sub(r"^(decimal\(.*\)).*", r"\1", true["type"])
        if not config["avro-enable-watermark"]:
            # DDL, which is among the watermarks, has all parameters.
            assert column.source_type == base


def _check_value(
    config: Any, truth: Truth, column: Truth, true: Any, actual: Any, losses: Losses
) -> None:
    table, name = f"{truth['schema']}.{truth['table']}", column["name"]
    expected = python_value(true)
    if same(expected, actual):
        return
    if not config["enable-tidb-extension"] and true is not None and _by_schema(true, actual):
        return
    place = f"seq {truth['seq']}, {table}.{name} {column['type']}: {actual!r} is not {true}"
    if true is None:
        assert losses.covers(table, name, "null"), place
        assert same(DEFAULTS[name], actual), place
    elif isinstance(expected, InvalidValue):
        assert losses.covers(table, name, "zero"), place
        assert actual is None or str(actual)[:19] in ("1970-01-01", "1970-01-01 00:00:00"), place
    else:
        assert losses.covers(table, name, "century"), place
        century = 2000 if expected.year < 70 else 1900
        assert same(expected.replace(year=expected.year + century), actual), place


def _by_schema(true: Truth, actual: Any) -> bool:
    """Whether a value is right for the schema's type, if it does not have the database's."""
    if true["t"] == "bit":
        return type(actual) is bool and actual == int(true["n"])
    return true["t"] in ("uint", "decimal") and actual == true["v"]
