"""Wire examples for the pages of the formats: a message, and the types of its columns.

Messages are the golden ones (tests/golden), CloudCanal's is its document's example.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import attrs
from cloudcanal_messages import DML

from cdcfmt_core.events import Column, Event, Message, RowChange
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_toolkit.avro_schemas import open_datum_reader, parse_avro
from cdcfmt_toolkit.decimal_digits import DecimalDigits
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from support.framed_data import framed_decoder, framed_messages, golden_schemas
from support.golden_data import (
    load_variant,
    native_messages,
    open_decoder,
    read_jsonl,
    reading_options,
    scan_schemas,
)

Row: TypeAlias = tuple[str, ...]

COLUMNS = (
    "c_bool", "c_int", "c_int_u", "c_bigint_u", "c_float", "c_double", "c_dec", "c_dec_big",
    "c_bit1", "c_bit10", "c_char", "c_text", "c_binary", "c_blob", "c_date", "c_datetime6",
    "c_timestamp3", "c_time3", "c_year", "c_enum", "c_set", "c_json",
)  # fmt: skip
"""Columns of golden.all_types, one of each kind of type."""


@attrs.frozen
class Wire:
    """How one producer configuration writes the first row of a table."""

    label: str
    options: Mapping[str, str]
    message: Message
    schemas_from: tuple[Message, ...] = ()

    def columns(self) -> dict[str, Column]:
        """The columns as the decoder gives them, decimals with the digits of the values."""
        schemas = None
        if self.schemas_from:
            schemas = scan_schemas(self.schemas_from, **self.options)
        (event,) = self.decode(self.message, schemas)
        assert isinstance(event, RowChange), event
        digits = DecimalDigits()
        digits.see(event)
        return {
            column.name: attrs.evolve(column, type=digits.known(column.name, column.type))
            for column in event.table.columns
        }

    def decode(self, message: Message, schemas: SchemaStore | None) -> Iterable[Event]:
        return open_decoder(schemas=schemas, **self.options).decode(message)


@attrs.frozen
class FramedWire(Wire):
    """A wire with a schema registry; ``folder``: that of its golden messages."""

    folder: str = ""

    def decode(self, message: Message, schemas: SchemaStore | None) -> Iterable[Event]:
        return framed_decoder(self.options["protocol"], self.folder).decode(message)


def samples() -> dict[str, str]:
    """A message of each format, as the JSON that it is or stands for."""
    change = {"op": "update", "table": "txn_a"}
    key, value = _frames(_golden("open", "default", **change)[0])
    dts = min(
        (
            record
            for record in map(_record, read_jsonl("native/dts/dts_truth.jsonl.gz"))
            if record["operation"] == "UPDATE" and (record["beforeImages"] or {}).get("array")
        ),
        key=lambda record: len(record["fields"]["array"]),
    )
    # The record has a column of each type: its first three are enough.
    for images in ("fields", "beforeImages", "afterImages"):
        record_of = dts[images]
        record_of["array"] = record_of["array"][:3]
    messages = {
        "canal-json": _document(_golden("canal-json", "tidb-extension", **change)[0]),
        "open-protocol": {"key": key, "value": value},
        "debezium": _document(_golden("debezium", "disable-schema", **change)[0]),
        "simple": _document(_golden("simple-json", "default", **change)[0]),
        "cloudcanal-json": DML,
        "dts-avro": dts,
        "ticdc-avro": _data(_framed_row("txn_a", "update")),
    }
    return {
        name: "\n".join(("```json", *_lines(message, ""), "```"))
        for name, message in messages.items()
    }


def type_tables() -> dict[str, list[Row]]:
    """The types of each format as its wire tells them; the first row of each is the head."""
    plain, full = (
        _wire("canal-json", "by rows alone", "default"),
        _wire("canal-json", "with DDL, or `content-compatible`", "default", scan=True),
    )
    debezium = (
        _wire("debezium", "with DDL in the input", "disable-schema", scan=True),
        _wire("debezium", "with `tidb_type`", "tidb-extension"),
        _wire("debezium", "with the message's schema alone", "default"),
    )
    open_ = (
        _wire("open", "by rows alone", "default"),
        _wire("open", "with DDL", "default", scan=True),
    )
    simple = _wire("simple-json", "", "default", scan=True)
    data = {name: _document(wire.message) for name, wire in (("canal", plain), ("simple", simple))}
    frames = _frames(open_[0].message)[1]["u"]
    after = _document(debezium[0].message)["payload"]["after"]
    return {
        "canal-json": _table(data["canal"]["data"][0], [plain, full], texts=False),
        "open-protocol": _table(
            {name: column["v"] for name, column in frames.items()},
            open_,
            {"code, flags": {name: f"{c['t']}, {c['f']}" for name, c in frames.items()}},
            texts=False,
        ),
        "debezium": _table(after, debezium, texts=False),
        "simple": _table(data["simple"]["data"], [simple]),
        "cloudcanal-json": _cloudcanal_table(),
        "dts-avro": _dts_table(),
        "ticdc-avro": _framed_table(),
    }


_TICDC_AVRO = "ticdc_avro/avro/tidb-extension"


def _framed_row(table: str, op: str) -> Message:
    """The first such row of TiCDC's Avro."""
    truth = {event["seq"]: event for event in read_jsonl("ticdc_avro/truth.jsonl.gz")}
    lines = read_jsonl(f"{_TICDC_AVRO}/messages.jsonl.gz")
    for line, message in zip(lines, framed_messages(_TICDC_AVRO), strict=True):
        (event,) = (truth[seq] for seq in line["events"])
        if (event["table"], event["op"]) == (table, op):
            return message
    raise AssertionError((table, op))


def _data(message: Message) -> dict[str, Any]:
    """Key and value of a framed message as JSON that stands for their Avro."""
    found = {}
    for part, data in (("key", message.key), ("value", message.value)):
        framed = data and golden_schemas(_TICDC_AVRO).split(data, (), part)
        assert framed
        read = open_datum_reader(parse_avro(framed.schema), len(bytes(framed.payload)))
        found[part] = {"schema id": framed.schema.id, "data": _as_json(read(bytes(framed.payload)))}
    return found


def _as_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes as hexadecimal digits."""
    return {n: f"0x{v.hex()}" if isinstance(v, bytes) else v for n, v in data.items()}


def _framed_table() -> list[Row]:
    message = _framed_row("all_types", "insert")
    options = {"protocol": "ticdc-avro"}
    wire = FramedWire("", options, message, folder=_TICDC_AVRO)
    return _table(_data(message)["value"]["data"], [wire])


def _wire(protocol: str, label: str, variant: str, *, scan: bool = False) -> Wire:
    message, options = _golden(protocol, variant, op="insert", table="all_types")
    everything: tuple[Message, ...] = ()
    if scan:
        everything = tuple(each.message for each in load_variant(protocol, variant).messages)
    return Wire(label, options, message, everything)


def _golden(protocol: str, variant: str, op: str, table: str) -> tuple[Message, dict[str, str]]:
    """The first message of that operation, and the options to read it."""
    loaded = load_variant(protocol, variant)
    for each in loaded.messages:
        if each.kind == "row" and (each.truth[0]["table"], each.truth[0]["op"]) == (table, op):
            return each.message, reading_options(loaded)
    raise AssertionError((protocol, variant, op, table))


@cache
def _declared() -> dict[str, str]:
    """The columns of golden.all_types as SHOW CREATE TABLE prints them."""
    variant = load_variant("canal-json", "default")
    event = next(
        event
        for event in variant.truth.values()
        if event["kind"] == "row" and event["table"] == "all_types"
    )
    return {column["name"]: column["type"] for column in event["columns"]}


def _table(
    values: Mapping[str, Any],
    wires: Iterable[Wire],
    more: Mapping[str, Mapping[str, str]] | None = None,
    *,
    texts: bool = True,
) -> list[Row]:
    """Column by column: the source's type, the value and type on the wire, and Spark's type."""
    more = more or {}
    wires = list(wires)
    columns = [wire.columns() for wire in wires]
    head = ["in the source", *more, "on the wire"]
    for wire in wires:
        head += (
            [f"type {wire.label}".strip(), "on Spark"]
            if texts
            else [f"on Spark {wire.label}".strip()]
        )
    rows: list[Row] = [tuple(head)]
    for name in COLUMNS:
        row = [_code(_declared()[name]), *(extra[name] for extra in more.values())]
        row.append(_code(_short(values[name])))
        for types in columns:
            row += _type_cells(types[name])[0 if texts else 1 :]
        rows.append(tuple(row))
    return rows


def _type_cells(column: Column) -> tuple[str, str]:
    spark = spark_type(column.type, TypeOptions()).simpleString()
    return _code(column.source_type) if column.source_type else "unknown", _code(spark)


def _cloudcanal_table() -> list[Row]:
    """By the type's name, for MySQL and for other sources."""
    names = dict.fromkeys(declared for name, declared in _declared().items() if name in COLUMNS)
    types = {f"c{number}": name for number, name in enumerate(names)}
    row = dict.fromkeys(types)
    tables = []
    for source in ("mysql", "other"):
        document = DML | {"action": "INSERT", "before": [], "data": [row], "dbValType": types}
        value = json.dumps(document | {"jdbcType": {}}).encode()
        options = {"protocol": "cloudcanal-json", "sourceDatabase": source, "sourceTimeZone": "UTC"}
        tables.append(Wire(source, options, Message(None, value)).columns())
    rows: list[Row] = [("`dbValType`", "on Spark", "of another database than MySQL")]
    rows += (
        (_code(types[name]), *(_type_cells(table[name])[1] for table in tables)) for name in types
    )
    return rows


def _dts_table() -> list[Row]:
    """By the type's number and the value's class, over all golden records of MySQL."""
    decoder = open_decoder(protocol="dts-avro")
    messages = {message.offset: message for message in native_messages("dts/dts")}
    found: dict[tuple[int, str], Row] = {}
    for line in read_jsonl("native/dts/dts_truth.jsonl.gz"):
        record = _record(line)
        images = record["afterImages"]
        if record["source"]["sourceType"] != "MySQL" or not images or "array" not in images:
            continue
        for event in decoder.decode(messages[line["offset"]]):
            if not isinstance(event, RowChange):
                continue
            types = {column.name: column for column in event.table.columns}
            for field, value in zip(record["fields"]["array"], images["array"], strict=True):
                if not isinstance(value, dict) or field["name"] not in types:
                    continue
                key = field["dataTypeNumber"], next(iter(value)).rpartition(".")[2]
                if key[1] != "EmptyObject":
                    cells = _type_cells(types[field["name"]])
                    found.setdefault(key, (str(key[0]), f"`{key[1]}`", *cells))
    head = ("`dataTypeNumber`", "value", "type", "on Spark")
    return [head, *(found[key] for key in sorted(found))]


def _record(line: Mapping[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = line["avro_json"]
    return record


def _document(message: Message) -> Any:
    assert message.value is not None
    return json.loads(message.value)


def _frames(message: Message) -> tuple[Any, Any]:
    """Key and value of a message of the Open Protocol with one event."""
    assert message.key is not None
    assert message.value is not None
    return json.loads(message.key[16:]), json.loads(message.value[8:])


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 30 else text[:28] + "…"


def _code(text: str) -> str:
    return f"`{text}`"


def _lines(value: Any, indent: str) -> Iterator[str]:
    """JSON with a line for each member; short values on one line."""
    dump: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False).encode
    if not isinstance(value, (dict, list)) or len(dump(value)) < 70:
        yield indent + dump(value)
        return
    names = [f"{dump(name)}: " for name in value] if isinstance(value, dict) else [""] * len(value)
    members = list(value.values()) if isinstance(value, dict) else value
    yield indent + ("{" if isinstance(value, dict) else "[")
    for number, (name, member) in enumerate(zip(names, members, strict=True), 1):
        first, *others = _lines(member, indent + "  ")
        lines = [f"{indent}  {name}{first.lstrip()}", *others]
        lines[-1] += "," if number < len(members) else ""
        yield from lines
    yield indent + ("}" if isinstance(value, dict) else "]")
