"""A source with tables that change at random, as Canal-JSON of TiCDC, and the truth of them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.events import Message
from support.canal_messages import COMMIT_TS, ddl_message, row_message, watermark_message

Key: TypeAlias = tuple[str, int]
"""Table and id."""
BANKS = ("bank_a", "bank_b")
ACCOUNTS = 5
"""Of each bank."""
MONEY = 10_000


@attrs.define
class Source:
    """``rows`` are what its tables hold; ``history`` what they held, with commit_ts of both ends;
    ``changes`` counts the changes that the messages have, without those that are sent again.

    Besides, two banks send one another money: the accounts of both together have ``MONEY``.
    """

    tables: tuple[str, ...]
    partitions: int
    dice: random.Random
    commit_ts: int = COMMIT_TS
    rows: dict[Key, str] = attrs.field(factory=dict)
    history: list[tuple[str, int, str, int, int | None]] = attrs.field(factory=list)
    changes: int = 0
    added: Counter[str] = attrs.field(factory=Counter)
    """How many columns each table has gained."""
    in_wire: Callable[[Message], list[Message]] = attrs.field(default=lambda message: [message])
    """Writes the messages of rows in another format; statements and watermarks stay."""
    _since: dict[Key, int] = attrs.field(factory=dict)

    def messages(self, count: int) -> list[Message]:
        """So many transactions, with watermarks between them and behind the last one."""
        steps = [message for _ in range(count) for message in self._step()]
        return [*steps, *self._watermarks()]

    def _watermarks(self) -> list[Message]:
        watermark = watermark_message(self.commit_ts + 1)
        return [self._message(watermark, partition) for partition in range(self.partitions)]

    def _transfer(self) -> list[Message]:
        """One transaction: both banks open their accounts, or one sends the other money."""
        if (BANKS[0], 0) not in self.rows:
            accounts = [(bank, id_) for bank in BANKS for id_ in range(ACCOUNTS)]
            return [m for key in accounts for m in self._put(key, str(MONEY // len(accounts)))]
        amount = self.dice.randrange(100)
        sent = []
        for bank, sign in zip(self.dice.sample(BANKS, 2), (1, -1), strict=True):
            key = bank, self.dice.randrange(ACCOUNTS)
            sent += self._put(key, str(int(self.rows[key]) + sign * amount))
        return sent

    def _put(self, key: Key, name: str) -> list[Message]:
        old = self._cells(key) if key in self.rows else None
        self._begin(key, name)
        return self._sent("UPDATE" if old else "INSERT", key, self._cells(key), old)

    def _step(self) -> list[Message]:
        self.commit_ts += self.dice.randrange(1, 1000) << 18
        if self.dice.random() < 0.1:
            return self._watermarks()
        if self.dice.random() < 0.2:
            return self._transfer()
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
        if what < 0.02:
            self.added[table] += 1
            sql = f"ALTER TABLE {table} ADD COLUMN c{self.added[table]} INT"
            ddl = ddl_message(sql, "ALTER", table=table, commit_ts=self.commit_ts)
            return [self._message(ddl, partition) for partition in range(self.partitions)]
        if what < 0.2 and alive:
            key = self.dice.choice(alive)
            row = self._cells(key)
            self._end(key)
            return self._sent("DELETE", key, row)
        key = self.dice.choice(alive) if what < 0.7 and alive else (table, self.dice.randrange(100))
        return self._put(key, f"v{self.commit_ts}")

    def _cells(self, key: Key) -> dict[str, str]:
        more = {f"c{number + 1}": str(key[1]) for number in range(self.added[key[0]])}
        return {"id": str(key[1]), "name": self.rows[key], "price": "1.50", **more}

    def _begin(self, key: Key, name: str) -> None:
        self._end(key)
        self.rows[key] = name
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
        return self.in_wire(self._message(value, key[1] % self.partitions))

    def _message(self, value: dict[str, Any], partition: int) -> Message:
        return Message(b"", json.dumps(value).encode(), partition=partition)
