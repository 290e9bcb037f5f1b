"""Good messages, for the tests of bad input."""

from __future__ import annotations

from simple_messages import (
    ID,
    NAME,
    bootstrap,
    column,
    timestamp,
    unsigned,
)

EVERY_TYPE = (
    ID,
    NAME,
    column("big", "bigint", unsigned=True),
    column("at", "timestamp"),
    column("price", "decimal", length=10, decimal=2),
    column("kind", "enum", elements=["a", "b"]),
    column("tags", "set", elements=["a", "b"]),
    column("bits", "bit", length=10),
    column("raw", "blob"),
    column("f", "float"),
    column("d", "double"),
    column("day", "date"),
)


FULL = {
    "id": "1",
    "name": "John",
    "big": "18446744073709551615",
    "at": {"location": "Asia/Shanghai", "value": "2023-12-27 12:27:23"},
    "price": "1.50",
    "kind": "1",
    "tags": "3",
    "bits": "5",
    "raw": "AP8=",
    "f": "0.5",
    "d": "0.25",
    "day": "2023-12-27",
}


AVRO_FULL = {
    "id": ("long", 1),
    "name": ("string", "John"),
    "big": unsigned(-1),
    "at": timestamp("2023-12-27 12:27:23"),
    "price": ("string", "1.50"),
    "kind": ("long", 1),
    "tags": ("long", 3),
    "bits": ("string", "5"),
    "raw": ("bytes", b"\0\xff"),
    "f": ("float", 0.5),
    "d": ("double", 0.25),
    "day": ("string", "2023-12-27"),
}


CHECKSUM = {"version": 1, "corrupted": False, "current": 7, "previous": 0}


TOLD = bootstrap(*EVERY_TYPE)
