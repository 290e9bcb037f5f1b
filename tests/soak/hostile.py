"""Hostile messages of a given size in every format: small on the wire, large when decoded.

Large values come from the project's encoders; other messages are built here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import attrs
from support.golden_encoding import open_encoder

from cdcfmt_core.events import (
    Column,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
)
from cdcfmt_core.types import Binary, Int, Json, Text
from cdcfmt_toolkit.large_message_output import ClaimCheckWriter, open_compressor

DATABASE, TABLE = "d", "t"
_MAX_COLUMNS = 40_000
"""Encoders take their time for more."""
PLACE = b'"@@"'
"""Where the hostile part of a JSON message goes."""


class Hostile(NamedTuple):
    """A message; ``before`` are the ones that tell its table's schema.

    ``files`` are those of claim checks: names and bytes; ``topic`` and ``headers`` are the last
    message's.
    """

    protocol: str
    name: str
    value: bytes
    key: bytes | None
    options: dict[str, str]
    before: tuple[Message, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    topic: str = "t"
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        last = Message(self.key, self.value, self.headers, self.topic, 0, 1)
        return (*self.before, last)


ENCODERS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "canal-json": ("canal-json", {"enableTidbExtension": True}, {}),
    "open-protocol": ("open-protocol", {"maxBatchSize": 1}, {}),
    "debezium": ("debezium", {"enableTidbExtension": True}, {}),
    "simple-json": ("simple", {}, {}),
    "simple-avro": ("simple", {"encodingFormat": "avro"}, {}),
    "cloudcanal-json": ("cloudcanal-json", {}, {}),
    "dts-avro": ("dts-avro", {}, {}),
}
"""Wire → format, options of its encoder, and of its decoder."""

CARRIERS = {
    f"{wire}+{carrier}": (wire, carrier)
    for wire in ("canal-json", "open-protocol", "debezium", "simple-json", "simple-avro")
    for carrier in ("lz4", "snappy", "claims")
    if (wire, carrier) != ("debezium", "claims")
}
"""TiCDC's wires, compressed or in claim checks: small until opened."""

PLAIN = (*ENCODERS, "canal-flat")
REPEATED = "repeated"
"""Canal-JSON whose rows repeat what the message has once: topic, headers, members of columns."""
WIRES = (*PLAIN, *CARRIERS, REPEATED)


def hostile(size: int, wires: tuple[str, ...] = PLAIN) -> Iterator[Hostile]:
    """Messages of about ``size`` bytes, each with its format and name."""
    for wire in wires:
        if wire in CARRIERS:
            inner, carrier = CARRIERS[wire]
            if carrier == "claims":
                yield from _claimed(inner, size)
            else:
                yield from map(partial(_compressed, wire, carrier), hostile(size, (inner,)))
        if wire in ENCODERS:
            yield from _encoded(wire, size)
        for name, template in TEMPLATES.get(wire, {}).items():
            for part, fill in _fillings(size).items():
                value = template.replace(PLACE, fill(size))
                protocol = ENCODERS.get(wire, ("canal-json", {}, {}))[0]
                yield Hostile(protocol, f"{wire}: {part} as {name}", value, None, {})
    if "open-protocol" in wires:
        yield from _frames(size)
    if REPEATED in wires:
        yield from _repeating(size)


def _compressed(wire: str, compression: str, each: Hostile) -> Hostile:
    compress = open_compressor(compression)
    assert compress is not None
    options = each.options | {"largeMessageHandleCompression": compression}
    before = tuple(attrs.evolve(m, value=m.value and compress(m.value)) for m in each.before)
    value = compress(each.value)
    name = each.name.replace(each.name.partition(":")[0], wire)
    return each._replace(name=name, value=value, options=options, before=before)


def _claimed(wire: str, size: int) -> Iterator[Hostile]:
    files: dict[str, bytes] = {}

    class Folder(ClaimCheckWriter):
        def write_file(self, name: str, body: bytes) -> None:
            files[name] = body

    store = Folder("claims")
    given = {"largeMessageHandleOption": "claim-check", "maxMessageBytes": 2_000}
    for each in _encoded(wire, size, claim_checks=store, **given):
        yield each._replace(name=each.name.replace(":", "+claims:", 1), files=(*files.items(),))
        files.clear()


# --- Large, and what its encoder writes -------------------------------------------------


def _encoded(wire: str, size: int, **also: Any) -> Iterator[Hostile]:
    protocol, given, options = ENCODERS[wire]
    # Open Protocol's texts are base64: a message is no larger than it is to be.
    for name, events in _events(size * 3 // 4 if protocol == "open-protocol" else size):
        if protocol != "simple":
            events = [event for event in events if not isinstance(event, TableSchemaEvent)]
        encoder = open_encoder(protocol, **{"maxMessageBytes": 1 << 30} | given | also)
        try:
            messages = [message for event in events for message in encoder.encode(event)]
            messages += encoder.flush()
        except Exception as error:
            print(f"{wire}: {name} cannot be written: {str(error)[:100]}")
            continue
        if messages:
            *before, last = messages
            yield Hostile(
                protocol, f"{wire}: {name}", last.value or b"", last.key, options, tuple(before)
            )


def _events(size: int) -> Iterator[tuple[str, list[Event]]]:
    id_ = Column("a", "int", Int(32), key=True)

    def one(column: Column, value: Any, **also: Any) -> list[Event]:
        table = TableSchema(DATABASE, TABLE, (id_, column), ("a",))
        return _with_schema(table, {"a": 1, "b": value}, **also)

    text = Column("b", "longtext", Text("utf8mb4"))
    yield "a text", one(text, "x" * size)
    yield "a wide text", one(text, "x" * (size - 4) + "\U0001f600")
    yield "a text of quotes", one(text, '"' * (size // 2))
    yield "a text of controls", one(text, "\1" * (size // 6))
    yield "a text before and after", one(text, "x" * (size // 2), before="y" * (size // 2))
    yield "bytes", one(Column("b", "longblob", Binary()), b"\xff" * (size * 3 // 4))
    document = Column("b", "json", Json())
    yield "JSON of lists", one(document, "[" + "[]," * (size // 3) + "[]]")
    yield "JSON of objects", one(document, "[" + '{"a":1},' * (size // 8) + "1]")
    yield (
        "JSON of names",
        one(document, json.dumps({f"{n}": n for n in range(size // 18)}, separators=(",", ":"))),
    )
    names = [f"c{number}" for number in range(min(size // 40, _MAX_COLUMNS))]
    table = TableSchema(DATABASE, TABLE, (id_, *(Column(n, "int", Int(32)) for n in names)), ("a",))
    yield "many columns", _with_schema(table, {"a": 1} | dict.fromkeys(names, 1))
    tags = {f"t{number}": "x" * 1_000 for number in range(size // 1_012)}
    yield "tags", one(text, "x", extra={"tags": tags})
    long = TableSchema(DATABASE, TABLE * size, (id_,), ("a",))
    yield "a long name", _with_schema(long, {"a": 1})
    query = "create table t (" + ",".join(f"c{n} int" for n in range(size // 14)) + ")"
    yield (
        "a statement",
        [
            SchemaChange(
                query=query,
                ddl_type="CREATE",
                database="d",
                table="t",
                commit_ts=7 << 18,
                source_time=7_000_000,
            )
        ],
    )


def _with_schema(
    table: TableSchema,
    values: dict[str, Any],
    before: str | None = None,
    extra: dict[str, Any] | None = None,
) -> list[Event]:
    old = None if before is None else Image(values | {"b": before})
    change = RowChange(
        "insert" if old is None else "update",
        table,
        old,
        Image(values),
        commit_ts=7 << 18,
        source_time=7_000_000,
        extra=extra,
    )
    return [TableSchemaEvent(table_schema=table, commit_ts=6 << 18), change]


# --- JSON that no encoder writes -------------------------------------------------------


def _repeated(piece: bytes, before: bytes = b"[", behind: bytes = b"]") -> Callable[[int], bytes]:
    def fill(size: int) -> bytes:
        pieces = piece * max(size // len(piece), 1)
        return before + pieces.rstrip(b",") + behind

    return fill


FILLINGS: dict[str, Callable[[int], bytes]] = {
    "lists": _repeated(b"[],"),
    "objects": _repeated(b"{},"),
    "rows": _repeated(b'{"a":"1"},'),
    "bad rows": _repeated(b'{"a":"x"},'),
    "numbers": _repeated(b"1,"),
    "nulls": _repeated(b"null,"),
    "fractions": _repeated(b"1.5e3,"),
    "long texts": lambda size: b'["' + b"x" * (size // 2) + b'","' + b"\xff" * (size // 2) + b'"]',
    "one list in another": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "one object in another": lambda size: b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6),
    "members": lambda size: (
        b"{" + b",".join(b'"c%d":1' % number for number in range(size // 12)) + b"}"
    ),
    "half a list": _repeated(b"[[],", behind=b""),
}

_MANY_VALUES = 2 << 20
_LARGE = ("rows", "long texts", "one list in another", "members", "half a list")


def _fillings(size: int) -> dict[str, Callable[[int], bytes]]:
    """Above some size all lists of small values are refused alike, so one of them will do."""
    return FILLINGS if size <= _MANY_VALUES else {name: FILLINGS[name] for name in _LARGE}


_CANAL: dict[str, Any] = {
    "id": 0,
    "database": DATABASE,
    "table": TABLE,
    "pkNames": ["a"],
    "isDdl": False,
    "type": "INSERT",
    "es": 1_700_000_000_000,
    "ts": 1_700_000_000_001,
    "sql": "",
    "sqlType": {"a": 4},
    "mysqlType": {"a": "int"},
    "old": None,
    "data": [{"a": "1"}],
}
_COLUMN = {"name": "a", "jdbcType": 4, "typeExpression": "int", "typeName": "int", "position": 0}
_CHANGES = {"type": "ALTER", "id": '"d"."t"', "table": {"columns": [_COLUMN]}}
_DEBEZIUM: dict[str, Any] = {
    "before": None,
    "after": {"a": 1},
    "source": {"connector": "mysql", "name": "p", "ts_ms": 1, "db": DATABASE, "table": TABLE},
    "op": "c",
    "ts_ms": 1,
}
_SIMPLE: dict[str, Any] = {
    "version": 1,
    "database": DATABASE,
    "table": TABLE,
    "tableID": 1,
    "type": "INSERT",
    "commitTs": 7 << 18,
    "buildTs": 1,
    "schemaVersion": 5,
    "data": {"a": "1"},
}
_TABLE_SCHEMA = {
    "schema": DATABASE,
    "table": TABLE,
    "tableID": 1,
    "version": 5,
    "columns": [{"name": "a", "dataType": {"mysqlType": "int"}, "nullable": False}],
    "indexes": [{"name": "p", "unique": True, "primary": True, "columns": ["a"]}],
}
_CLOUDCANAL: dict[str, Any] = {
    "action": "INSERT",
    "before": [],
    "bid": 0,
    "data": [{"a": "1"}],
    "db": DATABASE,
    "dbValType": {"a": "int"},
    "jdbcType": {"a": 4},
    "isDdl": False,
    "entryType": "ROWDATA",
    "execTs": 1_669_789_152_000,
    "pks": ["a"],
    "schema": DATABASE,
    "sendTs": 1_669_789_153_377,
    "sql": "",
    "table": TABLE,
}


def _templates(wire: dict[str, Any], *paths: str) -> dict[str, bytes]:
    """The message with the place at each path (``source.db``), by its name."""
    return {path: _with_place(wire, path.split(".")) for path in paths}


def _with_place(wire: dict[str, Any], path: list[str]) -> bytes:
    copy = json.loads(json.dumps(wire))
    at = copy
    for name in path[:-1]:
        at = at[int(name) if isinstance(at, list) else name]
    at[int(path[-1]) if isinstance(at, list) else path[-1]] = "@@"
    return json.dumps(copy, separators=(",", ":")).encode()


TEMPLATES: dict[str, dict[str, bytes]] = {
    "canal-json": _templates(_CANAL, "data", "old", "more", "mysqlType", "pkNames", "data.0.a")
    | {"update": _with_place(_CANAL | {"type": "UPDATE", "old": []}, ["data"])},
    "canal-flat": _templates(
        _CANAL | {"type": "ALTER", "isDdl": True, "sql": "alter", "tableChanges": _CHANGES},
        "tableChanges.table.columns",
        "more",
    ),
    "debezium": _templates(_DEBEZIUM, "after", "before", "source.more", "after.a")
    | {
        "tableChanges": _with_place(
            {"source": _DEBEZIUM["source"], "ddl": "alter", "tableChanges": []}, ["tableChanges"]
        ),
        "columns": _with_place(
            {"source": _DEBEZIUM["source"], "ddl": "alter", "tableChanges": [_CHANGES]},
            ["tableChanges", "0", "table", "columns"],
        ),
        "fields": _with_place(
            {"schema": {"type": "struct", "fields": []}, "payload": _DEBEZIUM}, ["schema", "fields"]
        ),
    },
    "simple-json": _templates(_SIMPLE, "data", "old", "more", "checksum")
    | {
        "columns": _with_place(
            {
                "version": 1,
                "type": "BOOTSTRAP",
                "commitTs": 0,
                "buildTs": 1,
                "tableSchema": _TABLE_SCHEMA,
            },
            ["tableSchema", "columns"],
        )
    },
    "cloudcanal-json": _templates(_CLOUDCANAL, "data", "before", "more", "dbValType", "pks"),
}


# --- Rows that repeat -------------------------------------------------------------------


def _repeating(size: int) -> Iterator[Hostile]:
    """Half of the bytes is rows, half is what they repeat."""
    part = size // 2
    count = max(part // len(b'{"a":"1000"},'), 1)
    long = "n" * part
    names = ",".join(f"'{number:02}{'n' * min(part // 60, 1_000)}'" for number in range(60))
    rows: dict[str, dict[str, Any]] = {
        "topic": {"topic": long},
        "header": {"headers": (("h", long.encode()),)},
        "name of a header": {"headers": ((long, None),)},
        "headers": {"headers": (("h", b"v"),) * (part // 8)},
        "bad rows and topic": {"topic": long, "row": 1},
        "enum": {"type": f"enum('{'n' * min(part, 65_000)}')"},
        "set": {"type": f"set({names})", "row": {"a": "1000"}},
        "set before and after": {"type": f"set({names})", "old": {"a": "1"}},
    }
    for name, given in rows.items():
        wire = _CANAL | {"mysqlType": {"a": given.get("type", "varchar(9)")}}
        before = _CANAL | wire
        wire |= {"data": [given.get("row", {"a": "1"})] * count}
        if "old" in given:
            wire |= {"type": "UPDATE", "old": [given["old"]] * count}
        value, first = (json.dumps(w, separators=(",", ":")).encode() for w in (wire, before))
        about = {key: given[key] for key in ("topic", "headers") if key in given}
        yield Hostile(
            "canal-json", f"rows: {name}", value, None, {}, before=(Message(None, first),), **about
        )


# --- Frames -----------------------------------------------------------------------------


def _frames(size: int) -> Iterator[Hostile]:
    def framed(data: bytes) -> bytes:
        return struct.pack(">q", len(data)) + data

    head = struct.pack(">q", 1)
    key = json.dumps({"ts": 7 << 18, "scm": DATABASE, "tbl": TABLE, "t": 1}).encode()
    row = json.dumps({"u": {"a": {"t": 3, "h": True, "f": 11, "v": 1}}}).encode()
    bad = json.dumps({"u": {"a": {"t": 15, "h": True, "f": 11, "v": "x"}}}).encode()
    for name, value in (("rows", row), ("rows that do not fit", bad), ("no objects", b"1")):
        count = min(size // (len(key) + len(value) + 16) or 1, 100_000)
        yield Hostile(
            "open-protocol",
            f"frames: {name}",
            framed(value) * count,
            head + framed(key) * count,
            {},
        )
    for place in ("u", "p", "d", "q"):
        for part, fill in _fillings(size).items():
            value = b'{"u":{"a":{"t":3,"h":true,"f":11,"v":1}},"%s":' % place.encode()
            value = framed(value + fill(size) + b"}")
            yield Hostile(
                "open-protocol", f"frames: {part} as {place}", value, head + framed(key), {}
            )
    empty = b"\0" * 8
    count = size // 8
    yield Hostile("open-protocol", "frames: empty", empty * count, head + empty * count, {})
