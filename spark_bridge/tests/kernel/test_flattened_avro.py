"""Flattened records in Avro by the compiled kernel: tables and operations as by the reference.

Their facts are in fields, headers and the topic, in any combination.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import fastavro
import pytest
from support.framed_data import GoldenSchemas

import cdcfmt_core.decoding
from cdcfmt_core.events import Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schema_registry import WriterSchema
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import Result, check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

TYPES: Mapping[str, str] = {
    **dict.fromkeys(("op", "db", "schema", "table", "name", "connector", "deleted"), "string"),
    **dict.fromkeys(("file", "snapshot", "gtid", "version", "keyspace", "commit_lsn"), "string"),
    **dict.fromkeys(("ts_ms", "ts_us", "ts_ns", "lsn", "pos", "server_id", "txId"), "long"),
}
VALUES: Mapping[str, Sequence[Any]] = {
    "op": ("c", "u", "r", "d", "t", "?"),
    "deleted": ("true", "false", "other"),
    "db": ("d", "e", ""),
    "schema": ("s", "public", ""),
    "table": ("t", "u", "a.t", ""),
    "connector": ("mysql", "postgresql", "sqlserver"),
    "name": ("p", "q"),
    "ts_ms": (1795888719430, 0),
    "ts_us": (1795888719430296, 0),
    "ts_ns": (1795888719430296123,),
    "lsn": (1, 2**62),
}
TOPICS = ("p.d.t", "p.public.t", "p.d.public.t", "p.d.a.t", "p.e.all", "t", "x.y.p.d.t", None)
OPTIONS: Sequence[dict[str, str]] = (
    {},
    {},
    {},
    {"flattenedDatabase": "d"},
    {"flattenedTable": "topic"},
    {"flattenedTable": "topic", "flattenedDatabase": "e"},
    {"flattenedPrefix": "meta_"},
)


class Stream:
    """Random messages of a few writer schemas, topics and headers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.options = self.chance.choice(OPTIONS)
        self.prefix = self.options.get("flattenedPrefix", "__")
        self.schemas: dict[int, dict[str, Any]] = {}
        for number in range(2, 2 + self.chance.randrange(1, 4)):
            self.schemas[number] = self.schema()
        self.schemas[1] = _record([{"name": "id", "type": "long"}])
        self.headers = [self.some_headers() for _ in range(3)]
        self.topics = self.chance.sample(TOPICS, 2)

    def added(self) -> list[str]:
        """Names of added facts, most of them as in real streams."""
        usual = ("op", "table", "db", "schema", "source_ts_ms", "source_lsn", "deleted")
        names = [name for name in usual if self.chance.random() < 0.5]
        if self.chance.random() < 0.2:
            other = self.chance.choice([*TYPES])
            names.append(self.chance.choice(("", "source_")) + other)
        return list(dict.fromkeys(names))

    def schema(self) -> dict[str, Any]:
        fields = [
            {"name": "id", "type": "long"},
            {"name": "v", "type": ["null", "string"], "default": None},
            {"name": self.chance.choice(("n", "__dunder", "source")), "type": ["null", "int"]},
        ]
        for name in self.added():
            kind = TYPES[name.removeprefix("source_")]
            field = self.prefix + name if name != "deleted" else "__deleted"
            place = self.chance.randrange(len(fields) + 1)
            fields.insert(place, {"name": field, "type": ["null", kind], "default": None})
        return _record(fields)

    def some_headers(self) -> tuple[tuple[str, bytes | None], ...]:
        chance = self.chance
        headers: list[tuple[str, bytes | None]] = []
        if chance.random() < 0.7:
            headers.append(("__debezium.context.connectorName", b'"postgresql"'))
        for name in self.added() if chance.random() < 0.4 else ():
            value = self.value(name)
            data = json.dumps(value) if chance.random() < 0.5 else str(value)
            headers.append((chance.choice(("__", self.prefix)) + name, data.encode()))
        if chance.random() < 0.1:
            headers.append((self.prefix + "extra", chance.choice((None, b"1.5", b"[1]", b'"x"'))))
        return tuple(headers)

    def value(self, name: str) -> Any:
        if self.chance.random() < 0.01:
            return None
        known = VALUES.get(name.removeprefix("source_"))
        if known is None:
            return {"string": "f", "long": 7}[TYPES[name.removeprefix("source_")]]
        # The first ones are usual.
        return known[min(int(self.chance.expovariate(3)), len(known) - 1)]

    def message(self) -> Message:
        chance = self.chance
        number = chance.choice([each for each in self.schemas if each > 1])
        headers, topic = chance.choice(self.headers), chance.choice(self.topics)
        if chance.random() < 0.03:
            headers = self.some_headers()
        key = chance.choice((_framed(1, self.schemas[1], {"id": 1}), None))
        if chance.random() < 0.1:
            return Message(key, None, headers, topic, 0, 0)
        record: dict[str, Any] = {}
        for field in self.schemas[number]["fields"]:
            name = field["name"]
            if name in ("id", "n", "v", "__dunder", "source"):
                record[name] = {"id": 5, "v": "x"}.get(name, 3)
            else:
                record[name] = self.value(
                    "deleted" if name == "__deleted" else name.removeprefix(self.prefix)
                )
        return Message(key, _framed(number, self.schemas[number], record), headers, topic, 0, 0)

    def messages(self, count: int) -> list[Message]:
        made = [self.message() for _ in range(count)]
        return [attrs.evolve(each, offset=place) for place, each in enumerate(made)]

    @property
    def writers(self) -> GoldenSchemas:
        schemas = {
            number: WriterSchema(number, "avro", json.dumps(schema))
            for number, schema in self.schemas.items()
        }
        return GoldenSchemas("confluent", schemas)


def _record(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": "Value", "fields": fields}


def _framed(number: int, schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    out.write(b"\0" + number.to_bytes(4, "big"))
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def compare(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    stream = Stream(seed)
    monkeypatch.setattr(cdcfmt_core.decoding, "open_writer_schemas", lambda *_: stream.writers)
    messages = stream.messages(120)
    options = {"protocol": "debezium", "flattened": "true", **stream.options}
    asked = parsed({**options, "imageFormat": stream.chance.choice(("json", "variant"))})
    as_lists = stream.chance.random() < 0.5
    results = [check_equal(messages, events_schema(asked), asked, as_lists=as_lists)]
    wanted = EventFilter(
        include_tables=("d.t", "d.public.t"),
        ops=stream.chance.choice((None, frozenset(("insert", "delete")))),
    )
    results.append(check_equal(messages, events_schema(asked), asked, event_filter=wanted))
    asked = parsed({**options, "table": "d.t"})
    schema = inferred_schema(messages, asked)
    if schema is not None:
        results.append(check_equal(messages, schema, asked))
    return results


@pytest.mark.parametrize("seeds", range(10))
def test_random_streams(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernel = 0
    for seed in range(seeds * 5, seeds * 5 + 5):
        by_kernel += compare(seed, monkeypatch)[0].by_kernel
    assert by_kernel > 50
