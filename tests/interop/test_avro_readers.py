"""Avro as we write it, read by Confluent's own deserializer and by fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import fastavro
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import SOURCE_ZONE
from support.schema_registry import OfflineRegistry, offline_registry

from cdcfmt_core import opening
from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.types import Decimal as DecimalType
from cdcfmt_core.types import Int, Text
from cdcfmt_toolkit.avro_output import forget
from cdcfmt_toolkit.json_output import is_lossless_text

SET = "ticdc_avro/debezium-avro/tidb-extension"
TOPIC = "shop"
EMPTY = 5
"""The bytes of a record without fields, in its framing."""
FORMATS: dict[str, dict[str, Any]] = {
    "debezium": {"encodingFormat": "avro", "avroBigintUnsignedHandlingMode": "string"},
    "ticdc-avro": {"avroIncludeBeforeValue": True, "avroBigintUnsignedHandlingMode": "string"},
}
SKIPPED = {"unsupportedValues": "skip", "unsupportedEvents": "skip", "invalidText": "replace"}


@pytest.fixture
def server() -> Iterator[OfflineRegistry]:
    forget()
    with offline_registry() as found:
        yield found
    forget()


def written(server: OfflineRegistry, protocol: str) -> Iterator[tuple[RowChange, Message]]:
    """The rows of TiCDC's ``debezium-avro``, and their messages."""
    decoder = framed_decoder("debezium", SET, source_time_zone=ZoneInfo(SOURCE_ZONE))
    given = {
        **FORMATS[protocol],
        **SKIPPED,
        "sourceTimeZone": SOURCE_ZONE,
        "schema.registry.url": server.url,
        "schema.registry.topic": TOPIC,
    }
    for part in ("key", "value"):
        given[f"schema.registry.{part}.subject.name.strategy"] = "TopicRecordNameStrategy"
    encoder = opening.open_encoder(protocol, given)
    for theirs in framed_messages(SET):
        for event in decoder.decode(theirs):
            if isinstance(event, RowChange):
                for message in encoder.encode(event):
                    yield event, message


def by_fastavro(server: OfflineRegistry, data: bytes) -> Any:
    """A framed datum; all of its bytes are read."""
    assert data[0] == 0
    schema = json.loads(server.registered[int.from_bytes(data[1:5], "big") - 1])
    stream = io.BytesIO(data[5:])
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert stream.read() == b""
    return found


def texts(event: RowChange) -> Iterator[str]:
    for image in (event.before, event.after):
        yield from (each for each in (image.values if image else {}).values() if type(each) is str)


def plain(column: Any, value: Any) -> Any:
    """A value as Avro has it, where that does not depend on the format."""
    if value is None:
        return None
    if isinstance(column.type, Int):
        is_text = column.type == Int(64, signed=False)
        return str(value) if is_text else value
    if isinstance(column.type, Text | DecimalType):
        return value
    return ...


@pytest.mark.parametrize("protocol", FORMATS)
def test_both_read_every_message(server: OfflineRegistry, protocol: str) -> None:
    client = SchemaRegistryClient({"url": server.url})
    read = AvroDeserializer(client)
    messages = values = refused = 0
    compared: set[type] = set()
    for event, message in written(server, protocol):
        messages += 1
        for field, data in ((MessageField.KEY, message.key), (MessageField.VALUE, message.value)):
            if data is None:
                continue
            if field == MessageField.VALUE and not all(map(is_lossless_text, texts(event))):
                # Its bytes are written, as by TiCDC; these readers refuse them.
                refused += 1
                with pytest.raises(UnicodeDecodeError):
                    by_fastavro(server, data)
                continue
            found = by_fastavro(server, data)
            if len(data) == EMPTY:
                # As TiCDC's key of a table without one; the deserializer wants a byte more.
                assert found == {}
                continue
            assert read(data, SerializationContext(TOPIC, field)) == found
            if field == MessageField.KEY:
                continue
            row = found
            if protocol == "debezium":
                row = found["before" if event.op == "delete" else "after"]
                assert found["source"]["table"] == event.table.table
            image = event.after or event.before
            assert image is not None
            for column in event.table.columns:
                wanted = plain(column, image.values.get(column.name))
                if wanted is ... or column.name not in row:
                    continue
                values += 1
                compared.add(type(wanted))
                assert row[column.name] == wanted, (event.table.name, column)
    assert refused < 10
    assert messages >= 200
    assert values > 400
    assert compared >= {int, str, Decimal, type(None)}
