"""A source with tables that change at random, as Canal-JSON of TiCDC, and the truth of them."""

from __future__ import annotations

import json
import random
from typing import Any, TypeAlias

import attrs
from canal_messages import COMMIT_TS, ddl_message, row_message

from cdcfmt_core.events import Message

Key: TypeAlias = tuple[str, int]
"""Table and id."""


@attrs.define
class Source:
    """``rows`` are what its tables hold; ``history`` what they held, with commit_ts of both ends;
    ``changes`` counts the changes that the messages have, without those that are sent again."""

    tables: tuple[str, ...]
    partitions: int
    dice: random.Random
    commit_ts: int = COMMIT_TS
    rows: dict[Key, str] = attrs.field(factory=dict)
    history: list[tuple[str, int, str, int, int | None]] = attrs.field(factory=list)
    changes: int = 0
    _since: dict[Key, int] = attrs.field(factory=dict)

    def messages(self, count: int) -> list[Message]:
        """So many transactions, each of one change."""
        return [message for _ in range(count) for message in self._step()]

    def _step(self) -> list[Message]:
        self.commit_ts += self.dice.randrange(1, 1000) << 18
        table = self.dice.choice(self.tables)
        alive = [key for key in self.rows if key[0] == table]
        what = self.dice.random()
        if what < 0.01 and alive:
            for key in alive:
                self._end(key)
            self.changes += 1
            sql = f"TRUNCATE TABLE {table}"
            ddl = ddl_message(sql, "TRUNCATE", table=table, commit_ts=self.commit_ts)
            return [self._message(ddl, partition) for partition in range(self.partitions)]
        if what < 0.2 and alive:
            key = self.dice.choice(alive)
            row = self._cells(key)
            self._end(key)
            return self._sent("DELETE", key, row)
        if what < 0.7 and alive:
            key = self.dice.choice(alive)
            old = self._cells(key)
            self._begin(key)
            return self._sent("UPDATE", key, self._cells(key), old)
        key = table, self.dice.randrange(100)
        kind = "INSERT"
        old = None
        if key in self.rows:
            kind, old = "UPDATE", self._cells(key)
        self._begin(key)
        return self._sent(kind, key, self._cells(key), old)

    def _cells(self, key: Key) -> dict[str, str]:
        return {"id": str(key[1]), "name": self.rows[key], "price": "1.50"}

    def _begin(self, key: Key) -> None:
        self._end(key)
        self.rows[key] = f"v{self.commit_ts}"
        self._since[key] = self.commit_ts

    def _end(self, key: Key) -> None:
        if key in self.rows:
            version = (*key, self.rows.pop(key), self._since.pop(key), self.commit_ts)
            self.history.append(version)

    def whole_history(self) -> list[tuple[str, int, str, int, int | None]]:
        open_ = [(*key, name, self._since[key], None) for key, name in self.rows.items()]
        return [*self.history, *open_]

    def _sent(
        self, kind: str, key: Key, row: dict[str, str], old: dict[str, str] | None = None
    ) -> list[Message]:
        self.changes += 1
        value = row_message(kind, row, old, commit_ts=self.commit_ts, table=key[0])
        return [self._message(value, key[1] % self.partitions)]

    def _message(self, value: dict[str, Any], partition: int) -> Message:
        return Message(b"", json.dumps(value).encode(), partition=partition)
