"""The keys of deleted rows: older changes of them arrive later, and have no effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.control import Control
from pyspark_cdcfmt.sync.expressions import Position, compared, key_text_now, literal
from pyspark_cdcfmt.sync.session import keeping
from pyspark_cdcfmt.sync.states import TableState

_TABLE = "tombstones"
_DELETE = StructType([StructField("key", StringType()), StructField("sequence", SEQUENCE)])
_ROWS_OF_A_FILE = 1_000_000
_FEW = 10_000
"""Maximum number of deleted keys per batch that the driver collects and remembers."""

_MAX_DELETES = 1000


@attrs.define
class RecentDeletes:
    """The most recent deletes of a table: all after ``since``, by ``_sequence`` and key."""

    since: Position = ()
    deletes: list[tuple[Position, str]] = attrs.field(factory=list)

    def add(self, deletes: Iterable[tuple[Position, str]]) -> None:
        """Remember more deletes; keeps the last thousand."""
        known = sorted({*self.deletes, *deletes})
        forgotten, self.deletes = known[:-_MAX_DELETES], known[-_MAX_DELETES:]
        if forgotten:
            self.since = max(self.since, forgotten[-1][0])

    def after(self, sequence: Position) -> list[tuple[Position, str]] | None:
        """The deletes after a position; None if some may have been forgotten."""
        if sequence < self.since:
            return None
        return [delete for delete in self.deletes if delete[0] > sequence]


class Tombstones:
    """The control table ``tombstones``, and the driver's cache of it.

    The table may hold duplicates: they have no effect.
    """

    def __init__(self, spark: SparkSession, control: Control) -> None:
        self._spark = spark
        self._control = control
        self._recent: dict[str, RecentDeletes] | None = None
        self._lock = Lock()

    def add(self, keys: DataFrame, most: int) -> pa.Table | None:
        """Append the ``source``, ``key`` and ``sequence`` of deleted rows.

        :param most: an upper bound of the number of rows.
        :returns: the rows, if they are few; else None.
        """
        with keeping() as kept:
            keys = kept.keep(keys)
            if most > _FEW:
                most = keys.count()
            few = keys.toArrow() if most <= _FEW else None
            if few is not None and not few.num_rows:
                return few
            rows = keys if few is None else self._spark.createDataFrame(few, keys.schema)
            rows = rows.withColumn("at", f.current_timestamp())
            # Without an id: a repeated batch may have more rows.
            self._control.append(_TABLE, rows.coalesce(1 + most // _ROWS_OF_A_FILE), None)
            return few

    def remember(self, newest: Mapping[str, Position], few: pa.Table | None) -> set[str]:
        """Remember what :meth:`add` appended; returns tables that may have tombstones.

        :param newest: an upper bound of the deletes' ``sequence``, by table.
        """
        rows = () if few is None else few.to_pylist()
        texts = {*newest} if few is None else {row["source"] for row in rows}
        with self._lock:
            if self._recent is None:
                return texts
            for text in texts:
                recent = self._recent.setdefault(text, RecentDeletes())
                if few is None:
                    recent.since = max(recent.since, newest[text])
                else:
                    its = (row for row in rows if row["source"] == text)
                    recent.add((tuple(row["sequence"].values()), row["key"]) for row in its)
        return texts

    def exist_after(self, state: TableState, sequence: Position) -> bool:
        """Whether any row of a table may have been deleted after a position."""
        with self._lock:
            if self._recent is None:
                found = self._control.rows(_TABLE).groupBy("source")
                rows = found.agg(f.max("sequence").alias("sequence")).collect()
                self._recent = {row.source: RecentDeletes(tuple(row.sequence)) for row in rows}
            after = self._recent.get(state.text, RecentDeletes()).after(sequence)
            return after is None or bool(after)

    def after(self, state: TableState, sequence: Position) -> DataFrame:
        """Columns ``key`` and ``sequence`` of the deletes of a table after a position."""
        with self._lock:
            known = (self._recent or {}).get(state.text)
            after = None if known is None else known.after(sequence)
        if after is not None:
            found = self._spark.createDataFrame([(key, at) for at, key in after], _DELETE)
        else:
            found = self._control.rows(_TABLE)
            found = found.where(f.col("source") == state.text)
            found = found.where(compared("sequence", ">", literal(sequence)))
        return found.select(key_text_now(state.keys, state.own_columns).alias("key"), "sequence")

    def remove_older(self, seconds: float) -> None:
        """Remove tombstones older than ``seconds``."""
        self._control.delete(_TABLE, f"at < current_timestamp() - INTERVAL {int(seconds)} SECONDS")
