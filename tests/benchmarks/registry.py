"""Debezium's Avro with a schema registry: beside fastavro, beside ``from_avro``, and 1 000 tables.

``python tests/benchmarks/registry.py [rounds] [megabytes] [cores]``.  The rows are those of the
other samples, which fastavro writes with the schemas that TiCDC's ``debezium-avro`` has.  All
contenders run in turn in every round; the least CPU time counts, as all work besides adds to it.
"""

from __future__ import annotations

import base64
import gc
import io
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import fastavro
import pyarrow as pa
import report
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from run import load
from spark import check, open_session, timed
from spark_queries import NAMED, changes_schema

import cdcfmt_core.decoding
from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import Framed, WriterSchema
from cdcfmt_core.transport import MessageColumns
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import inferred_schema, parsed

sys.path.append(str(Path(__file__).parents[1]))
from support.schema_registry import offline_registry, plain_responses

READER = "fastavro's reader alone"
CONVERSION = "fastavro's reader and conversion"
ARROW = "fastavro's reader and conversion, to Arrow"
BY_HAND = "from_avro, one schema, framing cut by SQL"
CDC = "changes"
TABLES = 1000
_RUN = 10
_AT_A_TIME = 1000
"""Messages that a consumer gives at once, as of topics."""
_MESSAGES = 40_000
_WARMING = 3
_PASSES = 10
"""Passes over the messages in a row: one is 9 ms, most of it in caches that the others emptied."""
COLUMNS = NAMED | {"id": "bigint"}
_EPOCH = datetime(1970, 1, 1)


def _named(type_: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "connect.name": name, "connect.version": 1, **more}


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    digits = {"precision": str(precision), "scale": str(scale)}
    return {
        **_named("bytes", "org.apache.kafka.connect.data.Decimal"),
        "connect.parameters": digits,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


_ENUM = {"connect.parameters": {"allowed": "new,paid,shipped,done,cancelled"}}
_TYPES: Mapping[str, Any] = {
    "id": "long",
    "order_no": "string",
    "customer_id": "long",
    "status": _named("string", "io.debezium.data.Enum", **_ENUM),
    "amount": _decimal(16, 2),
    "discount": _decimal(10, 4),
    "quantity": "int",
    "is_gift": {"type": "int", "connect.type": "int16"},
    "weight": "double",
    "score": "float",
    "address": "string",
    "remark": "string",
    "payload": "bytes",
    "attrs": _named("string", "io.debezium.data.Json"),
    "created_at": _named("long", "io.debezium.time.Timestamp"),
    "updated_at": _named("string", "io.debezium.time.ZonedTimestamp"),
}
_SOURCE: Mapping[str, str] = {
    **dict.fromkeys(("version", "connector", "name"), "string"),
    "ts_ms": "long",
    "snapshot": "string",
    "db": "string",
    "table": "string",
    "server_id": "long",
    "gtid": "string",
    "file": "string",
    "pos": "long",
    "row": "int",
    "thread": "long",
    "query": "string",
    "commit_ts": "long",
    "cluster_id": "string",
}
_NULLABLE = ("gtid", "thread", "query")


def _field(name: str, type_: Any, *, nullable: bool) -> dict[str, Any]:
    return (
        {"name": name, "type": ["null", type_], "default": None}
        if nullable
        else {
            "name": name,
            "type": type_,
        }
    )


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    named = {"name": name, "namespace": "default.bench"}
    return {"type": "record", **named, "connect.name": f"default.bench.{name}", "fields": fields}


def value_schema(table: str) -> dict[str, Any]:
    row = _record(
        table, [_field(name, type_, nullable=name != "id") for name, type_ in _TYPES.items()]
    )
    source = [_field(name, type_, nullable=name in _NULLABLE) for name, type_ in _SOURCE.items()]
    return _record(
        f"{table}Envelope",
        [
            _field("before", row, nullable=True),
            _field("after", f"default.bench.{table}", nullable=True),
            _field("source", _record("Source", source), nullable=False),
            _field("op", "string", nullable=False),
            _field("ts_ms", "long", nullable=False),
        ],
    )


def key_schema(table: str) -> dict[str, Any]:
    return _record(f"{table}Key", [_field("id", "long", nullable=False)])


@cache
def payloads() -> list[dict[str, Any]]:
    """Envelopes of the golden messages, with the values of their Avro schema."""
    found = []
    for message in load("debezium")[2:]:
        payload = json.loads(message.value or b"", parse_float=Decimal)["payload"]
        for image in ("before", "after"):
            if (row := payload[image]) is not None:
                row["payload"] = base64.b64decode(row["payload"])
                for name, places in (("amount", 2), ("discount", 4)):
                    if row[name] is not None:
                        row[name] = Decimal(row[name]).quantize(Decimal(1).scaleb(-places))
                for name in ("weight", "score"):
                    row[name] = None if row[name] is None else float(row[name])
        found.append(payload)
    return found


@attrs.define
class Written:
    """Framed messages of tables, and their writer schemas by id."""

    texts: dict[int, str] = attrs.field(factory=dict)
    schemas: dict[int, WriterSchema] = attrs.field(factory=dict)

    def split(self, data: bytes, *_: Any) -> Framed:
        return Framed(self.schemas[int.from_bytes(data[1:5], "big")], data[5:])

    def messages(self, table: str, some: Iterable[dict[str, Any]]) -> list[Message]:
        """Messages of a table with two new ids."""
        numbers = len(self.texts) + 1, len(self.texts) + 2
        wires = value_schema(table), key_schema(table)
        for number, wire in zip(numbers, wires, strict=True):
            self.texts[number] = json.dumps(wire)
            self.schemas[number] = WriterSchema(number, "avro", self.texts[number])
        value, key = (
            self._writer(number, wire) for number, wire in zip(numbers, wires, strict=True)
        )
        return [
            Message(
                key({"id": (payload["after"] or payload["before"])["id"]}),
                value(payload | {"source": payload["source"] | {"table": table}}),
                topic=f"default.bench.{table}",
                partition=0,
                offset=offset,
            )
            for offset, payload in enumerate(some)
        ]

    def _writer(self, number: int, wire: Any) -> Callable[[dict[str, Any]], bytes]:
        schema = fastavro.parse_schema(wire)
        head = b"\0" + number.to_bytes(4, "big")

        def write(datum: dict[str, Any]) -> bytes:
            out = io.BytesIO(head)
            out.seek(len(head))
            fastavro.schemaless_writer(out, schema, datum)
            return out.getvalue()

        return write


def as_consumed(messages: list[Message]) -> list[MessageColumns]:
    """The messages as lists of values and so on, which a consumer of a topic makes for all."""
    found = []
    for start in range(0, len(messages), _AT_A_TIME):
        some = messages[start : start + _AT_A_TIME]
        found.append(
            MessageColumns(
                "default.bench",
                0,
                [message.key for message in some],
                [message.value for message in some],
                [message.headers for message in some],
                [*range(start, start + len(some))],
                [message.timestamp for message in some],
            )
        )
    return found


def open_engine(case: Mapping[str, str], messages: list[Message]) -> Engine:
    """An engine that has read the messages once."""
    options = parsed({"protocol": "debezium", **case})
    schema = events_schema(options)
    if options.table is not None:
        inferred = inferred_schema(messages, options)
        assert inferred is not None
        schema = inferred
    engine = Engine(ReadTask(schema, options, inferred=True))
    rows_of(engine, as_consumed(messages))
    assert not engine.counts["corrupt messages and rows"], engine.counts
    assert engine.chunks is not None, engine.refusal
    return engine


def rows_of(engine: Engine, consumed: list[MessageColumns]) -> int:
    """Read messages as a reader of topics does."""
    batches = engine.batches(map(MessageBatch.of_columns, consumed))
    return sum(batch.num_rows for batch in batches)


def read_by_hand(written: Written, *, converts: bool) -> Callable[[Message], Any]:
    """A message by fastavro, which has the schema of its id; the typed rows of both images."""
    schemas: dict[int, Any] = {
        number: fastavro.parse_schema(json.loads(text)) for number, text in written.texts.items()
    }
    read = fastavro.schemaless_reader
    types = {
        name: type_["connect.name"]
        for name, type_ in _TYPES.items()
        if type(type_) is dict and "connect.name" in type_
    }
    converters: dict[str, Callable[[Any], Any]] = {
        "io.debezium.time.Timestamp": lambda millis: _EPOCH + timedelta(milliseconds=millis),
        "io.debezium.time.ZonedTimestamp": datetime.fromisoformat,
    }
    typed = [(name, converters[kind]) for name, kind in types.items() if kind in converters]

    def row(message: Message) -> Any:
        data = message.value or b""
        schema = schemas[int.from_bytes(data[1:5], "big")]
        found: Any = read(io.BytesIO(data[5:]), schema, None)
        if converts:
            for image in ("before", "after"):
                if (cells := found[image]) is not None:
                    for name, convert in typed:
                        if cells[name] is not None:
                            cells[name] = convert(cells[name])
        return found

    return row


def arrow_by_hand(found: Iterable[Any]) -> pa.RecordBatch:
    """Both images of each message in one batch."""
    rows = [
        {
            "op": wire["op"],
            "commit_ts": wire["source"]["commit_ts"],
            "before": wire["before"],
            "after": wire["after"],
        }
        for wire in found
    ]
    return pa.RecordBatch.from_pylist(rows)


def least(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least CPU seconds of a pass of each, all in turn in every round."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            gc.collect()
            start = time.process_time()
            for _ in range(_PASSES):
                run()
            best[name] = min(best[name], (time.process_time() - start) / _PASSES)
    return best


def check_rows(written: Written, messages: list[Message], table: str) -> None:
    """Stop if the kernel's rows differ from those by hand."""
    options = {"table": f"bench.{table}", "images": "after", "jsonAs": "string"}
    engine = open_engine(options, messages)
    by_hand = read_by_hand(written, converts=True)
    images = [by_hand(message) for message in messages]
    wanted = [found["after"] or found["before"] for found in images]
    rows = [row for batch in engine.batches(messages) for row in batch.to_pylist()]
    ours = [{name: row[name] for name in _TYPES} for row in rows]
    for row in ours:
        row["updated_at"] = row["updated_at"].astimezone(UTC)
    if ours != wanted:
        differing = next(both for both in zip(ours, wanted, strict=False) if both[0] != both[1])
        raise SystemExit(f"not the rows that fastavro reads: {differing}")


def without_spark(rounds: int) -> list[dict[str, Any]]:
    """A record for each contender: microseconds a message, and how much faster than by hand."""
    written = Written()
    messages = written.messages("orders", payloads())
    cdcfmt_core.decoding.open_writer_schemas = lambda *_: written  # type: ignore[attr-defined]
    check_rows(written, messages, "orders")
    changes = {"table": "bench.orders", "jsonAs": "string"}
    cases = {
        CDC: changes,
        "changes, images=after": changes | {"images": "after"},
        "events, images as JSON": {"imageFormat": "json"},
        "events, images as variant": {},
    }
    contenders: dict[str, Callable[[], object]] = {}
    consumed = as_consumed(messages)
    for name, case in cases.items():
        engine = open_engine(case, messages)
        contenders[name] = lambda engine=engine: rows_of(engine, consumed)  # type: ignore[misc]
    for name in (READER, CONVERSION):
        read = read_by_hand(written, converts=name == CONVERSION)
        contenders[name] = lambda read=read: [read(m) for m in messages]  # type: ignore[misc]
    contenders[ARROW] = lambda: arrow_by_hand(map(read, messages))
    best = least(contenders, rounds)
    return [
        {"case": name, "us": best[name] / len(messages) * 1e6, "of": best[CONVERSION] / best[name]}
        for name in contenders
    ]


def mixed(tables: list[list[Message]], run: int) -> list[Message]:
    """Messages of random tables, each message an object of its own, as a topic's are."""
    chance = random.Random(run)
    chosen: list[Message] = []
    while len(chosen) < _MESSAGES:
        table = chance.choice(tables)
        chosen += (chance.choice(table) for _ in range(run))

    def copy(message: Message) -> Message:
        value, key = bytes(bytearray(message.value or b"")), bytes(bytearray(message.key or b""))
        return attrs.evolve(message, value=value, key=key)

    return list(map(copy, chosen[:_MESSAGES]))


def many_tables(rounds: int) -> list[dict[str, Any]]:
    """A record for each mixture: microseconds a message, and how much those of one table take."""
    written = Written()
    cdcfmt_core.decoding.open_writer_schemas = lambda *_: written  # type: ignore[attr-defined]
    few = payloads()[:20]
    tables = [written.messages(f"orders_{number:04}", few) for number in range(TABLES)]
    flows = {"one table": mixed(tables[:1], 1)}
    flows |= {f"{TABLES} tables in any mixture": mixed(tables, 1)}
    flows |= {f"{TABLES} tables, {_RUN} messages of each in turn": mixed(tables, _RUN)}
    contenders = {}
    engines = []
    for name, flow in flows.items():
        engine = open_engine({"imageFormat": "json"}, flow)
        engines.append((engine, engine.chunks.by_reference if engine.chunks else 0))
        consumed = as_consumed(flow)
        contenders[name] = lambda engine=engine, flow=consumed: rows_of(engine, flow)
    best = least(contenders, rounds)
    for engine, learned in engines:
        assert engine.chunks is not None
        assert engine.chunks.by_reference == learned, "the kernel left messages to the reference"
    first = best["one table"]
    return [
        {"case": name, "us": seconds / _MESSAGES * 1e6, "of": seconds / first}
        for name, seconds in best.items()
    ]


def by_hand(spark: SparkSession, path: str, schema: str) -> DataFrame:
    """Typed columns of both images, from a file of whole messages as JSON Lines."""
    from pyspark.sql.avro.functions import from_avro

    wires = spark.read.schema("value string").json(path)
    datum = F.expr("substring(unbase64(value), 6)")
    messages = wires.select(from_avro(datum, schema).alias("m"))
    columns: list[Any] = []
    for image in ("after", "before"):
        for name, type_ in COLUMNS.items():
            value = F.col(f"m.{image}.{name}")
            if name == "created_at":
                value = F.timestamp_millis(value)
            columns.append(value.cast(type_).alias(f"{image}_{name}"))
    return messages.select("m.op", "m.source.commit_ts", *columns)


def on_spark(rounds: int, megabytes: int, cores: int) -> list[dict[str, Any]]:
    """A record for each contender: CPU of all processes, seconds, and by how much less."""
    written = Written()
    messages = written.messages("orders", payloads())
    spark = open_session(cores)
    with (
        tempfile.TemporaryDirectory() as folder,
        offline_registry(responses=plain_responses(written.texts)) as registry,
    ):
        path, few = f"{folder}/orders.jsonl", f"{folder}/few.jsonl"
        lines = b"".join(wrap_line(message) + b"\n" for message in messages)
        times = max(1, megabytes * 1_000_000 // len(lines))
        Path(path).write_bytes(lines * times)
        Path(few).write_bytes(b"".join(wrap_line(message) + b"\n" for message in messages[:20]))

        def cdc(path: str, **options: str) -> DataFrame:
            reader = spark.read.format("cdc").schema(changes_schema(COLUMNS))
            address = {"schema.registry.url": registry.url}
            named = {"protocol": "debezium", "table": "bench.orders", **address, **options}
            return reader.options(**named).load(path)

        schema = written.texts[1]
        queries: dict[str, Callable[[str], DataFrame]] = {
            BY_HAND: lambda path: by_hand(spark, path, schema),
            CDC: cdc,
            "changes, images=after": lambda path: cdc(path, images="after"),
        }
        check(cdc(few), by_hand(spark, few, schema), BY_HAND)
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in queries}
        for round_ in range(-_WARMING, rounds):
            for name, query in queries.items():
                once = timed(lambda query=query: query(few))[1]  # type: ignore[misc]
                seconds, cpu = timed(lambda query=query: query(path))  # type: ignore[misc]
                if round_ >= 0:
                    found[name].append((cpu, seconds, once))
    spark.stop()
    count = len(messages) * times
    best = {name: tuple(map(min, zip(*some, strict=True))) for name, some in found.items()}
    of_hand = best[BY_HAND]
    return [
        {
            "case": name,
            "messages": count,
            "cores": cores,
            "us": cpu / count * 1e6,
            "rate": count / seconds,
            "of": of_hand[0] / cpu,
            "of_rate": of_hand[1] / seconds,
            "of_net": (of_hand[0] - of_hand[2]) / (cpu - once),
        }
        for name, (cpu, seconds, once) in best.items()
    ]


def main() -> None:
    given = [int(text) for text in sys.argv[1:4]]
    rounds, megabytes, cores = [*given, *[5, 100, 2][len(given) :]]
    results = json.loads(report.RESULTS.read_text("utf-8"))
    load = round(os.getloadavg()[0], 1)
    found: dict[str, Any] = {"rounds": rounds, "load": load}
    found |= {"without_spark": without_spark(rounds), "many_tables": many_tables(rounds)}
    found["on_spark"] = []
    if megabytes:
        report.write({**results, "registry": found})
        found["on_spark"] = on_spark(rounds, megabytes, cores)
        report.write({**results, "registry": found})
    for part in ("without_spark", "many_tables", "on_spark"):
        for each in found[part]:
            print(part, each, flush=True)


if __name__ == "__main__":
    main()
