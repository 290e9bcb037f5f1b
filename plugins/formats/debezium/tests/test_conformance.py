"""The conformance kit on messages of TiCDC and Debezium; test_golden.py has their truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import attrs
from support.bare_types import without_signs_of_zeros
from support.golden_data import native_messages
from support.golden_encoding import golden_cases

from cdcfmt_core.events import Event, Image, RowChange, SchemaChange, Watermark
from cdcfmt_core.types import Decimal
from cdcfmt_testing import Carries, Case, CodecTests, RoundTrip, without

NATIVE: dict[str, dict[str, str]] = {
    "noschema_default": {"timePrecisionMode": "adaptive_time_microseconds"},
    "noschema_strings": {
        "decimalHandlingMode": "string",
        "timePrecisionMode": "connect",
        "binaryHandlingMode": "base64",
    },
    "schema_default": {},
}

CARRIES = Carries(
    # A decimal with more digits than a double does not round-trip.
    types=(*without(Decimal), Decimal(10, 2)),
    ops=("insert", "update", "delete", "read"),
    kinds=frozenset({"row", "watermark"}),
    invalid_dates=False,
)

FIELD = "*: schema.fields[].fields"


def normalise(event: Event, decoded: Any) -> Event:
    """Types may lose parameters; the fields of ``source`` are added."""
    if not isinstance(event, RowChange):
        extra = {"cluster_id": "default"} if isinstance(event, Watermark) else decoded.extra
        event = attrs.evolve(event, extra=extra)  # type: ignore[misc]
        if isinstance(event, SchemaChange):
            event = attrs.evolve(event, table_schema=decoded.table_schema)
        return event
    assert set(decoded.table.key_columns) == set(event.table.key_columns)
    assert set(decoded.table.column_names) == set(event.table.column_names)
    table = attrs.evolve(
        event.table, columns=decoded.table.columns, key_columns=decoded.table.key_columns
    )
    bare = {column.name for column in table.columns if column.type == Decimal()}
    return without_signs_of_zeros(
        attrs.evolve(
            event,
            table=table,
            before=_shortest(event.before, bare),
            after=_shortest(event.after, bare),
            extra=decoded.extra,
        )
    )


def _shortest(image: Image | None, names: set[str]) -> Image | None:
    """A double has the digits of a decimal without trailing zeros."""
    if image is None:
        return None
    values = {
        name: value.normalize() if name in names and value is not None else value
        for name, value in image.values.items()
    }
    return attrs.evolve(image, values=values)


def with_types(event: Event, decoded: Any) -> Event:
    """The same; DDL has complete types."""
    expected = normalise(event, decoded)
    if isinstance(event, SchemaChange):
        types = [
            {column.name: column.type for column in one.table_schema.columns}  # type: ignore[union-attr]
            for one in (event, decoded)
        ]
        assert types[0] == types[1]
    return expected


class TestDebezium(CodecTests):
    codec = "debezium"
    known_failures: ClassVar = {
        "test_every_kind_of_event": "no golden stream has heartbeats, nor messages of Postgres",
    }
    differences: ClassVar = {
        FIELD: "virtual generated columns are in no row",
        f"{FIELD}[].default": "Connect reads NULL as the default, where a schema has one",
        "golden.defaults_nobin: payload.*.y": "NULL, for which TiCDC writes the YEAR's default",
    }
    round_trips = (
        RoundTrip(carries=CARRIES, writing={"enableTidbExtension": True}, normalise=normalise),
        RoundTrip(
            name="without schema",
            carries=attrs.evolve(CARRIES, kinds=frozenset({"row"}), ddl_first=True),
            writing={"debeziumDisableSchema": True},
            normalise=with_types,
        ),
    )

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        yield from golden_cases("debezium")
        for name, options in NATIVE.items():
            # TiCDC's messages are written, not the connectors'.
            messages = tuple(native_messages(f"debezium/{name}"))[:200]
            yield Case(name, messages, options=options, writing=None)
