"""The conformance kit on records of the DTS SDK; test_golden.py has their truth."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, ClassVar

import attrs
from dts_records import branch_of, read_record, usual
from support.golden_data import native_messages

from cdcfmt_core.events import Event, Image, Message, RowChange
from cdcfmt_core.types import GeometryValue, Int, Vector
from cdcfmt_testing import Carries, Case, CodecTests, RoundTrip, without


def normalise(event: Event, decoded: Any) -> Event:
    """Types come from the values; 64 bits are decimals, and an SRID is lost."""
    if not isinstance(event, RowChange):
        return attrs.evolve(event, extra=decoded.extra)  # type: ignore[misc]
    columns = {column.name: column for column in event.table.columns}

    def value_of(name: str, value: Any) -> Any:
        if value is not None and columns[name].type in (Int(64), Int(64, signed=False)):
            return Decimal(value)
        return GeometryValue(None, value.wkb) if isinstance(value, GeometryValue) else value

    def image(one: Image | None) -> Image | None:
        if one is None:
            return None
        return Image({name: value_of(name, value) for name, value in one.values.items()})

    table = attrs.evolve(event.table, columns=decoded.table.columns)
    assert table.column_names == event.table.column_names
    return attrs.evolve(
        event,
        table=table,
        before=image(event.before),
        after=image(event.after),
        extra=decoded.extra,
    )


ONE_FORM = "the record class takes more than one form of it, and events do not tell which"


class TestDtsAvro(CodecTests):
    codec = "dts-avro"
    known_failures: ClassVar = {
        "test_bad_messages_do_not_affect_others": "a column of NULLs has the type of the values "
        "before it, also of those in a corrupt record",
    }
    round_trips = (
        RoundTrip(
            carries=Carries(
                types=without(Vector), times=frozenset({"source_time"}), time_unit=1_000_000
            ),
            normalise=normalise,
        ),
    )

    differences: ClassVar = {
        "*: *Images.c_year.*": ONE_FORM,
        "*: *Images.c_bit.*": ONE_FORM,
        "*: *Images.c_bin.*": ONE_FORM,
        "*: afterImages.e2.*": ONE_FORM,
        "*: afterImages.tz.TimestampWithTimeZone": "an instant has no zone",
        "*: *Images.c_dec.Decimal": "+5 is 5, and 1E+3 is 1000",
        "*: *Images.c_geom.*Geometry": "the number alone says geometry",
        "*: beforeImages": "an empty text or array is no image, as null is",
    }

    @classmethod
    def content_of(cls, message: Message) -> Any:
        """The datum as fastavro reads it, the values of images by the names of their columns."""
        wire = read_record(message.value or b"")
        names = [field["name"] for field in wire["fields"] or ()]
        for side in ("beforeImages", "afterImages"):
            if isinstance(wire[side], list) and wire[side]:
                values = zip(names, wire[side], strict=True)
                wire[side] = {name: {branch_of(value): value} for name, value in values}
        return wire

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        yield Case("sdk", tuple(native_messages("dts/dts")))
        # The SDK's rows have columns that the kernel leaves; these are longer, as the shortest
        # message of a sort is the one that is damaged.
        ops = ("INSERT", "UPDATE", "DELETE")
        rows = (usual(at, ops[at % 3], sourceTxid="x" * 999) for at in range(6))
        yield Case("usual", tuple(rows))
