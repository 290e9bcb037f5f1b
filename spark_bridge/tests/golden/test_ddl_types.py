"""With the DDL of a topic every column has the source's own type and the true values."""

from __future__ import annotations

import pytest
from support.golden_data import (
    load_variant,
    open_decoder,
    python_value,
    reading_options,
    same,
    scan_schemas,
)
from support.golden_rows import TYPES, images_of
from support.turns import in_turn

from cdcfmt_core.events import RowChange
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.schema_scan import open_input_scan
from cdcfmt_toolkit.topic_input import TopicSlice, first_partitions
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, table_option

CHARACTERS = {"bad_utf8", "bad_latin1"}
"""Tables of which TiCDC writes other characters than they have."""


VARIANTS = [
    ("canal-json", "default"),
    ("canal-json", "tidb-extension"),
    ("canal-json", "lz4"),
    ("open", "lz4"),
    ("open", "default"),
    ("open", "batched"),
]


@pytest.mark.parametrize(("protocol", "name"), VARIANTS)
def test_types_and_values_equal_the_truth(protocol: str, name: str) -> None:
    variant = load_variant(protocol, name)
    options = reading_options(variant)
    messages = [golden.message for golden in variant.messages]
    decoder = open_decoder(schemas=scan_schemas(messages, **options), **options)
    seen = set()
    for golden in variant.messages:
        for truth, event in zip(golden.truth, decoder.decode(golden.message), strict=True):
            if not isinstance(event, RowChange):
                continue
            columns = {column["name"]: column for column in truth["columns"]}
            for column in event.table.columns:
                text = columns[column.name]["type"]
                assert column.type == TYPES[text][2], (truth["table"], column.name)
                seen.add(text)
            for side, image in images_of(truth, event):
                assert image is not None
                for name, value in image.values.items():
                    true = python_value(columns[name][side])
                    assert same(true, value) or truth["table"] in CHARACTERS, (truth, name)
    assert {"decimal(65,30)", "enum('a','b','c,d','e''f','中')", "bit(64)"} <= seen


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "name"), in_turn(VARIANTS, of=2, begin=1))
def test_both_paths_agree(protocol: str, name: str) -> None:
    """Also where statements change a table's types between its rows."""
    variant = load_variant(protocol, name)
    base = reading_options(variant) | ({"oldValue": "true"} if variant.protocol == "open" else {})
    # Of each several, as the first ones of a table are what the others are read by.
    messages = [golden.message for golden in variant.messages for _ in range(3)]
    schemas = scan_schemas(messages, **base)
    by_kernel = 0
    for database, table in variant.tables:
        options = parsed({**base, "table": table_option(database, table)})
        schema = inferred_schema(messages, options, schemas)
        assert schema is not None
        by_kernel += check_equal(messages, schema, options, schemas=schemas).by_kernel
    # Compressed messages take the reference path.
    if is_installed() and variant.compression == "none":
        assert by_kernel > len(variant.messages) / 2


def test_schema_scan_covers_the_first_partition() -> None:
    places = [("a", 0, 0), ("a", 0, 9), ("a", 1, 0), ("b", 3, 0), ("b", 2, 0)]
    slices = [TopicSlice(OffsetRange(topic, number, at, at + 9)) for topic, number, at in places]
    found = [s.range for s in first_partitions(slices) if isinstance(s, TopicSlice)]
    assert [(each.topic, each.partition, each.start) for each in found] == [
        ("a", 0, 0),
        ("a", 0, 9),
        ("b", 2, 0),
    ]
    for protocol, one in (("open", True), ("canal-json", True), ("debezium", False)):
        read = parsed({"path": "x", "protocol": protocol})
        scan = open_input_scan(read.values, read.codec)
        assert scan is not None
        assert scan.one_partition == one
