"""Random changes of a real PostgreSQL: large values, keys, TRUNCATE, partitions, ALTER TABLE."""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs

SOURCE = {"subscribePattern": r"shop\.public\..*", "protocol": "debezium"}
CONNECTOR = {
    "skipped.operations": "none",
    "publish.via.partition.root": "true",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.replace.null.with.default": "false",
}
"""The settings of docs/postgresql.md."""
TABLES = ("customers", "orders", "visits", "readings")

CREATE = (
    "CREATE TABLE customers (id int PRIMARY KEY, balance numeric(10,2) DEFAULT 0, tags text[], "
    "profile jsonb, since timestamptz DEFAULT now(), notes text)",
    "CREATE TABLE orders (id int PRIMARY KEY, item text, notes text)",
    "ALTER TABLE orders REPLICA IDENTITY FULL",
    "CREATE TABLE visits (id int PRIMARY KEY, page text)",
    "CREATE TABLE readings (sensor int, day date, value double precision, "
    "PRIMARY KEY (sensor, day)) PARTITION BY RANGE (day)",
    "CREATE TABLE readings_01 PARTITION OF readings "
    "FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
    "CREATE TABLE readings_02 PARTITION OF readings "
    "FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
)
_IDS = 60
_LARGE = "(SELECT string_agg(md5({seed} || '.' || n), '') FROM generate_series(1, 150) AS n)"
"""Stored apart from its row."""
_MAX_COLUMNS = 6


@attrs.define
class Workload:
    """Statements that never fail; ``sent`` counts them."""

    dice: random.Random
    sent: int = 0
    _added: int = 0

    def statements(self, count: int) -> Iterator[str]:
        for _ in range(count):
            self.sent += 1
            yield self._statement()

    def _statement(self) -> str:
        dice, seed = self.dice, self.sent
        id_, large = dice.randrange(_IDS), _LARGE.format(seed=seed)
        day = f"'2026-0{dice.choice((1, 2))}-{dice.randrange(1, 29):02}'"
        what = dice.random()
        if what < 0.25:
            return (
                f"INSERT INTO customers VALUES ({id_}, {seed}.25, ARRAY['a{seed}', NULL], "
                f"'{{\"n\": [{seed}]}}', DEFAULT, {large}) ON CONFLICT (id) DO UPDATE "
                f"SET balance = {dice.choice(('NULL', f'{seed}.5'))}"
            )
        if what < 0.35:
            return f"DELETE FROM customers WHERE id = {id_}"
        if what < 0.5:
            return (
                f"INSERT INTO orders VALUES ({id_}, 'i{seed}', {large}) "
                f"ON CONFLICT (id) DO UPDATE SET item = 'u{seed}'"
            )
        if what < 0.6:
            new = dice.randrange(_IDS)
            return (
                f"UPDATE orders SET id = {new} WHERE id = {id_} "
                f"AND NOT EXISTS (SELECT FROM orders WHERE id = {new})"
            )
        if what < 0.7:
            return (
                f"INSERT INTO visits VALUES ({id_}, '/{seed}') "
                f"ON CONFLICT (id) DO UPDATE SET page = '/u{seed}'"
            )
        if what < 0.85:
            return (
                f"INSERT INTO readings VALUES ({id_ % 5}, {day}, {dice.random()}) "
                f"ON CONFLICT (sensor, day) DO UPDATE SET value = {dice.random()}"
            )
        if what < 0.95:
            # To another partition, most often.
            return (
                f"UPDATE readings SET day = {day} WHERE sensor = {id_ % 5} "
                f"AND day = (SELECT max(day) FROM readings WHERE sensor = {id_ % 5}) "
                f"AND NOT EXISTS (SELECT FROM readings WHERE sensor = {id_ % 5} AND day = {day})"
            )
        if what < 0.98 or self._added == _MAX_COLUMNS:
            return dice.choice(("TRUNCATE visits", "TRUNCATE readings", "TRUNCATE visits, orders"))
        self._added += 1
        return f"ALTER TABLE {dice.choice(TABLES)} ADD COLUMN c{self._added} int"
