"""Avro as we write it, read by Kafka Connect in Java with a real registry, and by a transform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pytest
from pyspark.sql import SparkSession
from support.apicurio import Apicurio
from support.connect_reader import AvroConnectReader
from support.framed_data import framed_decoder, framed_messages
from support.framed_encoding import STRATEGIES
from support.golden_data import SOURCE_ZONE
from support.maven import UnavailableError

from cdcfmt_core import opening
from cdcfmt_core.events import Image, Message, RowChange
from cdcfmt_toolkit.avro_output import avro_name, forget
from cdcfmt_toolkit.json_output import is_lossless_text

SET = "ticdc_avro/debezium-avro/tidb-extension"
EACH = 2
"""Rows of each table and operation."""


@pytest.fixture(scope="module")
def reader(spark: SparkSession, apicurio: Apicurio) -> AvroConnectReader:
    try:
        return AvroConnectReader(spark, apicurio.url.removesuffix("/apis/ccompat/v7"))
    except UnavailableError as reason:
        pytest.skip(f"Apicurio's converter cannot be had: {reason}")


def written(apicurio: Apicurio, names: str) -> Iterator[tuple[RowChange, Message]]:
    """Some rows of TiCDC, of every type, and our messages for them."""
    forget()
    decoder = framed_decoder("debezium", SET, source_time_zone=ZoneInfo(SOURCE_ZONE))
    encoder = opening.open_encoder(
        "debezium",
        {
            "encodingFormat": "avro",
            "avroSchemaNames": names,
            "avroBigintUnsignedHandlingMode": "string",
            "sourceTimeZone": SOURCE_ZONE,
            "schema.registry.url": apicurio.url,
            "schema.registry.topic": f"java-{names}",
            **STRATEGIES,
        },
    )
    seen: Counter[Any] = Counter()
    for theirs in framed_messages(SET):
        for event in decoder.decode(theirs):
            if not isinstance(event, RowChange):
                continue
            seen[event.table.name, event.op] += 1
            if seen[event.table.name, event.op] <= EACH:
                for message in encoder.encode(event):
                    yield event, message


def cells(image: Image | None) -> dict[str, Any]:
    return {} if image is None else dict(image.values)


def is_read_by_java(event: RowChange) -> bool:
    """Whether all texts are UTF-8; Java replaces other bytes."""
    values = [*cells(event.before).values(), *cells(event.after).values()]
    return all(is_lossless_text(each) for each in values if type(each) is str)


def test_connect_reads_every_cell(reader: AvroConnectReader, apicurio: Apicurio) -> None:
    """Avro to Connect's data by Java, from there to JSON by Java, which our decoder reads."""
    decoder = opening.open_decoder("debezium", {"sourceTimeZone": SOURCE_ZONE})
    rows = compared = left = 0
    types = set()
    for event, message in written(apicurio, "connector"):
        if not is_read_by_java(event):
            left += 1
            continue
        assert message.value is not None
        key = message.key and reader.as_json(message.key, is_key=True)
        as_json = attrs.evolve(message, key=key, value=reader.as_json(message.value))
        (read,) = decoder.decode(as_json)
        assert isinstance(read, RowChange), read
        assert (read.op, read.table.name) == (event.op, event.table.name)
        assert read.commit_ts == event.commit_ts
        for one, other in ((event.before, read.before), (event.after, read.after)):
            mine, theirs = cells(one), cells(other)
            # Java goes by the names that Avro allows.
            assert list(map(avro_name, mine)) == list(theirs)
            for name, value in mine.items():
                found = theirs[avro_name(name)]
                # Connect has no unsigned type: those are text.
                assert found in (value, str(value)), (event.table.name, name, value, found)
                compared += 1
                types.add(type(value))
        rows += 1
    assert rows > 60
    assert compared > 600
    assert len(types) >= 10
    assert left < rows / 5


@pytest.mark.parametrize("names", ["connector", "ticdc"])
def test_debeziums_transform_needs_the_connectors_names(
    reader: AvroConnectReader, apicurio: Apicurio, names: str
) -> None:
    found = 0
    for event, message in written(apicurio, names):
        if event.op != "insert" or not message.key or not is_read_by_java(event):
            continue
        assert message.value is not None
        row = reader.unwrapped(message.key, message.value)
        assert ("after" in row) == (names == "ticdc")
        assert (row.get("__op") == "c") == (names == "connector")
        found += 1
        if found == 10:
            break
    assert found == 10
