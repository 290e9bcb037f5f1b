"""Avro with a schema registry by the compiled kernel: the same rows as the reference."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from functools import cache
from itertools import product
from typing import Any

import attrs
import fastavro
import pytest
from kernel.test_golden import OF_EVENTS as EVENT_OPTIONS
from kernel.test_golden import OPTIONS
from support.framed_damage import odd_message
from support.framed_data import GoldenSchemas, framed_decoder, framed_messages, golden_schemas
from support.turns import in_turn

import cdcfmt_core.decoding
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.schema_registry import Framed, Headers, MessageSchemas, Part, WriterSchema
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import Result, check_equal, inferred_schema, parsed, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

DEBEZIUM = (
    "postgres/avro_confluent",
    "postgres/avro_confluent_decstring",
    "postgres/avro_confluent_refs",
    "postgres/avro_confluent_unwrap",
    "postgres/avro_apicurio8",
    "postgres/avro_apicurio_headers",
    "avro/avro_apicurio_headers",
    "avro/avro_confluent",
    "avro/avro_confluent_decstring",
    "ticdc_avro/debezium-avro/default",
    "ticdc_avro/debezium-avro/bigint-unsigned-string",
    "ticdc_avro/debezium-avro/decimal-string",
    "ticdc_avro/debezium-avro/delete-only-handle-key",
    "ticdc_avro/debezium-avro/glue",
    "ticdc_avro/debezium-avro/no-old-value",
    "ticdc_avro/debezium-avro/raw-change-event",
    "ticdc_avro/debezium-avro/single-topic",
    "ticdc_avro/debezium-avro/string-modes-extension",
    "ticdc_avro/debezium-avro/tidb-extension",
    "ticdc_avro/debezium-avro/watermark",
)
TICDC = (
    "bigint-unsigned-string",
    "column-selector",
    "decimal-string",
    "default",
    "glue",
    "include-before-value",
    "include-before-value-no-extension",
    "partitions",
    "raw-change-event",
    "single-topic",
    "string-modes-extension",
    "tidb-extension",
    "watermark",
)
SETS = [
    *(("debezium", folder) for folder in DEBEZIUM),
    *(("ticdc-avro", f"ticdc_avro/avro/{name}") for name in TICDC),
]

OF_EVENTS = [
    {"images": images, "imageFormat": form, "includeColumns": columns}
    for images, form, columns in product(
        ("both", "after", "none"), ("json", "variant"), ("false", "true")
    )
]
OF_CHANGES = [
    {"images": images, "splitKeyUpdates": split, "incompleteRows": "emit"}
    for images, split in product(("both", "after"), ("false", "true"))
]
_SIMILAR = 3
_FLATTENED = {"flattened": "true"}
_SHARES = {"postgres/avro_confluent_unwrap": 0.6, "postgres": 0.7}
"""Least share of row messages that the kernel reads, by set or its folder."""


@attrs.frozen
class _Strict:
    """Golden schemas that report an unknown id, as a registry does."""

    schemas: GoldenSchemas

    def split(self, data: bytes, headers: Headers, part: Part, *_: Any) -> Framed | None:
        try:
            return self.schemas.split(data, headers, part)
        except (KeyError, IndexError, ValueError) as error:
            raise DecodeError(f"schema id {error} is unknown") from None


def options_of(protocol: str, folder: str) -> dict[str, str]:
    """The options that a set needs."""
    return {"protocol": protocol, **(_FLATTENED if folder.endswith("unwrap") else {})}


def use(monkeypatch: pytest.MonkeyPatch, folder: str) -> MessageSchemas:
    """Let readers get the writer schemas of a golden set."""
    schemas = _Strict(golden_schemas(folder))
    monkeypatch.setattr(cdcfmt_core.decoding, "open_writer_schemas", lambda *_: schemas)
    return schemas


@cache
def some_of(
    protocol: str, folder: str, similar: int = _SIMILAR
) -> tuple[list[Message], list[tuple[str, ...]], int]:
    """Some messages of each table and operation, twice, and all others; tables; rows' messages."""
    own = dict.fromkeys(_FLATTENED, True) if folder.endswith("unwrap") else {}
    decode = framed_decoder(protocol, folder, **own).decode
    chosen: list[Message] = []
    tables: dict[tuple[str, ...], None] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    rows = 0
    for message in framed_messages(folder):
        try:
            changes = [event for event in decode(message) if isinstance(event, RowChange)]
        except Exception:
            changes = []
        kind = tuple(sorted(f"{change.table.name} {change.op}" for change in changes))
        tables |= {tuple(filter(None, change.table.name)): None for change in changes}
        seen[kind] += 1
        if not changes or seen[kind] <= similar:
            chosen.append(message)
            rows += bool(changes) and message.value is not None
    return chosen * 2, [*tables], 2 * rows


@pytest.mark.parametrize(
    ("protocol", "folder", "options"), in_turn(SETS, range(len(OF_EVENTS)), of=24)
)
def test_events(protocol: str, folder: str, options: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, folder)
    messages, _, rows = some_of(protocol, folder)
    asked = parsed(options_of(protocol, folder) | OF_EVENTS[options])
    result = check_equal(messages, events_schema(asked), asked)
    # With `columns`, deleted rows are the reference's.
    if OF_EVENTS[options]["includeColumns"] == "false":
        share = _SHARES.get(folder, _SHARES.get(folder.split("/")[0], 0.4))
        assert result.by_kernel >= share * rows, summary(result)


def summary(result: Result) -> str:
    """Why the kernel left messages to the reference."""
    reasons = Counter(refusal.text.partition(", at byte")[0] for refusal in result.refusals)
    return f"{result.by_kernel} by kernel; {reasons.most_common(5)}"


@pytest.mark.parametrize(
    ("protocol", "folder", "options"), in_turn(SETS, range(len(OF_CHANGES)), of=12)
)
def test_changes(protocol: str, folder: str, options: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, folder)
    messages, tables, _ = some_of(protocol, folder, 6)
    by_kernel = 0
    for place, table in enumerate(tables):
        if place % 4 != options % 4 and table[-1] != "all_types":
            continue
        of_test = OF_CHANGES[options] | OPTIONS[place % len(OPTIONS)]
        of_set = options_of(protocol, folder) | {"table": table_option(*table)}
        asked = parsed(of_set | of_test)
        schema = inferred_schema(messages, asked)
        if schema is not None:
            by_kernel += check_equal(messages, schema, asked).by_kernel
    assert by_kernel


@pytest.mark.parametrize(("protocol", "folder", "seed"), in_turn(SETS, range(4), of=20))
def test_odd_messages(
    protocol: str, folder: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = use(monkeypatch, folder)
    chance = random.Random(seed)
    good, tables, _ = some_of(protocol, folder)
    mixed = list(good)
    for message in good * 3:
        mixed.insert(chance.randrange(len(mixed)), odd_message(message, schemas, chance))
    asked = parsed(
        {
            **options_of("auto" if seed % 2 else protocol, folder),
            "imageFormat": ("json", "variant")[seed // 2 % 2],
            **chance.choice(EVENT_OPTIONS[:3]),
        }
    )
    by_kernel = check_equal(mixed, events_schema(asked), asked).by_kernel
    table = chance.choice(tables)
    of_set = options_of(protocol, folder) | {"table": table_option(*table)}
    asked = parsed(of_set | chance.choice(OPTIONS[:5]))
    schema = inferred_schema(good, asked)
    if schema is not None:
        by_kernel += check_equal(mixed, schema, asked).by_kernel
    assert by_kernel


def test_ids_in_any_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message is read with its own schema, whatever the one before it was."""
    folder = "ticdc_avro/debezium-avro/single-topic"
    use(monkeypatch, folder)
    messages, _, _ = some_of("debezium", folder, 100)
    mixed = list(messages)
    random.Random(1).shuffle(mixed)
    asked = parsed({"protocol": "debezium", "imageFormat": "json"})
    both = messages + mixed
    result = check_equal(both, events_schema(asked), asked)
    # All but the first of each schema.
    assert result.by_reference <= 30
    assert result.by_kernel == len(both) - result.by_reference


def test_an_unknown_id_is_one_bad_message(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "ticdc_avro/debezium-avro/single-topic"
    use(monkeypatch, folder)
    rows = framed_messages(folder)[:50]
    unknown = b"\0\xff\xff\xff\xff" + b"\0" * 20
    odd = [attrs.evolve(rows[0], value=unknown), attrs.evolve(rows[0], key=unknown)]
    asked = parsed({"protocol": "debezium", "imageFormat": "json"})
    result = check_equal([*rows, *odd, *rows], events_schema(asked), asked)
    assert result.by_kernel >= 85


COMMIT = "00000027:00000758:0005"


@pytest.mark.parametrize("change", ["00000027:00000758:0003", None])
@pytest.mark.parametrize("serial", [2, None])
def test_positions_of_sql_server(
    change: str | None, serial: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of PostgreSQL, with the ``source`` that the document of SQL Server's connector has."""
    folder = "postgres/avro_confluent"
    golden = golden_schemas(folder)
    messages = [
        m for m in framed_messages(folder) if (m.topic or "").endswith(".child") and m.value
    ]
    first = golden.split(messages[0].value or b"", (), "value")
    assert first is not None
    envelope = json.loads(first.schema.text)
    (source,) = (field["type"] for field in envelope["fields"] if field["name"] == "source")
    members = {"commit_lsn": "string", "change_lsn": "string", "event_serial_no": "long"}
    source["fields"] = [field for field in source["fields"] if field["name"] != "lsn"] + [
        {"name": name, "type": ["null", type_], "default": None} for name, type_ in members.items()
    ]
    schemas = GoldenSchemas(
        "confluent", {**golden.by_id, 1: WriterSchema(1, "avro", json.dumps(envelope))}
    )
    monkeypatch.setattr(cdcfmt_core.decoding, "open_writer_schemas", lambda *_: schemas)
    written = []
    for message in messages:
        framed = golden.split(message.value or b"", (), "value")
        assert framed is not None
        record: Any = fastavro.schemaless_reader(
            io.BytesIO(framed.payload), json.loads(framed.schema.text)
        )
        record["source"] |= dict(zip(members, (COMMIT, change, serial), strict=True))
        value = io.BytesIO(b"\0\0\0\0\1")
        value.seek(5)
        fastavro.schemaless_writer(value, envelope, record)
        written.append(attrs.evolve(message, value=value.getvalue()))
    asked = parsed({"protocol": "debezium", "table": "cdc.public.child"})
    schema = inferred_schema(written, asked)
    assert schema is not None
    result = check_equal(written * 3, schema, asked)
    assert result.by_kernel >= len(written), summary(result)
    found = result.rows["_sequence"].to_pylist()
    assert {row["file"] for row in found} == {f"{COMMIT}/{change or '~'}"}
    assert {row["pos"] for row in found} == {serial or 0}
    assert {row["server"] for row in found} == {0, None}
