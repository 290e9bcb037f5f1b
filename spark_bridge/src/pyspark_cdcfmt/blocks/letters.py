"""The table of a message that cannot be decoded, where its JSON names it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.registry import default_registry
from cdcfmt_toolkit.layout import layouts_of
from pyspark_cdcfmt.options import message_options, parse_options
from pyspark_cdcfmt.read.dataframes import to_udf
from pyspark_cdcfmt.rows.types import struct_of

_NAMES = ("database", "schema", "table")
_MAX_CHARACTERS = 1000
"""Maximum length of a name; longer text is not a name."""

Paths: TypeAlias = Sequence[tuple[str, tuple[str, ...]]]
"""Names, and the members of an envelope that have them."""


def with_tables(letters: DataFrame, source: Mapping[str, Any]) -> DataFrame:
    """Corrupt events with ``database``, ``schema`` and ``table`` from their envelopes.

    :param source: the options that the events were read with.
    """
    options = parse_options(message_options(source), of_dataframe=True).in_stream()

    def paths_of(protocol: str | None) -> Paths:
        # An option of another protocol than the one that is set.
        with suppress(CdcfmtError, KeyError):
            codec = default_registry().get_codec(protocol or "")
            return [
                path
                for each in layouts_of(codec, codec.own_options(options.codec))
                for begin in ((), ("payload",) if each.connect else ())
                for path in _paths(each.members, begin)
            ]
        return ()

    def cdc_tables(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        # Here, as Spark cannot send a cache to its workers.
        paths = cache(paths_of)
        for batch in batches:
            rows = [named_by(row["value"], paths(row["protocol"])) for row in batch.to_pylist()]
            yield pa.array(rows, pa.struct([(name, pa.string()) for name in _NAMES]))

    made = to_udf(cdc_tables, struct_of(**{name: StringType() for name in _NAMES}))
    message = f.struct(
        f.col("_source.protocol").alias("protocol"), f.col("_corrupt_record.value").alias("value")
    )
    found = letters.withColumn("__found", made(message))
    return found.withColumns({name: f.col(f"__found.{name}") for name in _NAMES}).drop("__found")


def named_by(value: bytes | None, paths: Paths) -> dict[str, str]:
    """The names in an envelope of JSON; empty if it is another text."""
    found: dict[str, str] = {}
    if not paths or value is None:
        return found
    try:
        envelope = json.loads(value)
    except (ValueError, RecursionError):
        return found
    for name, path in paths:
        member = envelope
        for part in path:
            member = member.get(part) if isinstance(member, dict) else None
        if isinstance(member, str) and 0 < len(member) <= _MAX_CHARACTERS and member.isprintable():
            found.setdefault(name, member)
    return found


def _paths(members: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, role in members.items():
        if isinstance(role, Mapping):
            yield from _paths(role, (*path, name))
        elif role in _NAMES:
            yield role, (*path, name)
