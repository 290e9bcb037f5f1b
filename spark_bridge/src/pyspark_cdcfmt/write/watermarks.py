"""The last watermarks of a stream's sources, stored in the stream's checkpoint folder.

A micro-batch may have rows and watermarks of only some partitions, while another partition
lags.  So the driver stores each known topic partition with its last watermark: one small file
per batch, under ``cdcfmt-watermarks`` in the checkpoint.  A repeated batch loads the state
before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa

from cdcfmt_core.errors import CdcfmtError, SinkError
from cdcfmt_core.texts import parse_json
from cdcfmt_toolkit.filesystem import FileSystem, open_filesystem
from pyspark_cdcfmt.rows.rows_to_events import Source

Watermarks: TypeAlias = dict[Source, int | None]
"""The last watermark of each topic partition (or file) that rows were read from."""


def sources_of(rows: pa.RecordBatch) -> Iterator[Source]:
    """The topics, paths and partitions that these rows were read from."""
    place = rows.schema.get_field_index("_source")
    if place < 0:
        yield (None, None, None)
        return
    source = rows.column(place)
    fields = dict(zip((field.name for field in source.type), source.flatten(), strict=True))
    names = [name for name in ("topic", "path", "partition") if name in fields]
    table = pa.table({"row": source.is_valid(), **{name: fields[name] for name in names}})
    groups = table.group_by(table.column_names, use_threads=False).aggregate([])
    for group in groups.to_pylist():
        yield group.get("topic"), group.get("path"), group.get("partition")


def merge_watermarks(reports: Iterable[Watermarks]) -> Watermarks:
    """The last watermark of each source; None if no report has one."""
    merged: Watermarks = {}
    for report in reports:
        for source, commit_ts in report.items():
            known = merged.get(source)
            merged[source] = commit_ts if known is None else max(known, commit_ts or 0)
    return merged


def lowest_watermark(reports: Iterable[Watermarks]) -> int | None:
    """The lowest watermark of all sources; None while a source with rows has none."""
    values = list(merge_watermarks(reports).values())
    if not values or None in values:
        return None
    return min(value for value in values if value is not None)


FOLDER: Final = "cdcfmt-watermarks"
_KEPT_BATCHES = 3


@attrs.define
class KeptWatermarks:
    """The watermarks at one batch of a stream; ``checkpoint`` is the option checkpointLocation."""

    checkpoint: str | None
    batch: int
    _sources: Watermarks = attrs.field(factory=dict, init=False)
    _written: int = attrs.field(default=0, init=False)

    def lowest(self, reports: Iterable[Watermarks]) -> int | None:
        """The lowest watermark of all known sources; None if not new, or if any source has none.

        :raises SinkError: if there are watermarks, but the checkpoint cannot be read.
        """
        reported = merge_watermarks(reports)
        of_topics = {source: last for source, last in reported.items() if source[1] is None}
        if of_topics:
            self._load(needed=any(last is not None for last in of_topics.values()))
            self._sources = merge_watermarks((self._sources, of_topics))
        # A file is read once and has no later watermark.
        lowest = lowest_watermark([reported, self._sources])
        if lowest is None or lowest <= self._written:
            return None
        self._written = lowest
        return lowest

    def save(self) -> None:
        """Save the state for the next batch; call it at the end of this one."""
        if not self._sources:
            return
        sources = [[*source, last] for source, last in self._sources.items()]
        needed = any(last is not None for last in self._sources.values())
        try:
            filesystem, folder = self._open()
            filesystem.makedirs(folder, exist_ok=True)
            with filesystem.open(f"{folder}/{self.batch}.json", "wb") as file:
                state = {"version": 1, "sources": sources, "written": self._written}
                file.write(json.dumps(state).encode())
            for batch in self._batches(filesystem, folder):
                if batch <= self.batch - _KEPT_BATCHES:
                    filesystem.rm_file(f"{folder}/{batch}.json")
        except (OSError, CdcfmtError) as error:
            if needed:
                raise self._failure("written", error) from error

    def _load(self, *, needed: bool) -> None:
        try:
            filesystem, folder = self._open()
            filesystem.invalidate_cache()
            before = [b for b in self._batches(filesystem, folder) if b < self.batch]
            if not before:
                return
            with filesystem.open(f"{folder}/{max(before)}.json", "rb") as file:
                parsed: Any = parse_json(file.read())
            self._sources = {(*source,): last for *source, last in parsed["sources"]}
            self._written = parsed["written"]
        except (OSError, ValueError, KeyError, TypeError, CdcfmtError) as error:
            if needed:
                raise self._failure("read", error) from error

    def _open(self) -> tuple[FileSystem, str]:
        if self.checkpoint is None:
            raise SinkError("the option is not set")
        filesystem, root = open_filesystem(self.checkpoint)
        return filesystem, f"{root.rstrip('/')}/{FOLDER}"

    def _batches(self, filesystem: FileSystem, folder: str) -> list[int]:
        try:
            listed = filesystem.ls(folder, detail=False)
        except FileNotFoundError:
            return []
        names = (str(path).rpartition("/")[2].removesuffix(".json") for path in listed)
        return [int(name) for name in names if name.isdecimal()]

    def _failure(self, what: str, error: Exception) -> SinkError:
        return SinkError(
            f"the watermarks of earlier batches cannot be {what} under checkpointLocation "
            f"{self.checkpoint}: {error}; without them a watermark could precede its rows: set "
            "checkpointLocation to a path that Python can open (fsspec), or leave watermarks out "
            "by kind <> 'watermark'"
        )
