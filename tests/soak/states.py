"""Damaged offsets, states and options of JSON: each is an error of cdcfmt."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import findings
from fsspec.implementations.memory import MemoryFileSystem
from mutators import mutant
from pyspark.sql.types import IntegerType, StructType
from table import Row

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Column, Message, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import Int
from cdcfmt_files.sources import FileInfo, FileOffset
from cdcfmt_files.sources.commits import read_manifest_file
from cdcfmt_files.sources.options import parse_storage_options
from cdcfmt_toolkit.schema_json import record_from_json, record_to_json
from cdcfmt_toolkit.topics.offset_request import parse_assign, parse_offsets
from cdcfmt_toolkit.topics.stream_offset import StreamOffset
from pyspark_cdcfmt.sync.options import by_table
from pyspark_cdcfmt.sync.states import TableState

NAME = "damaged states"
PLACE = "/manifest"

Read = Callable[[str], object]


def of_spark(read: Callable[[Any], object]) -> Read:
    """A reader of a document that Spark parses."""

    def of_text(text: str) -> object:
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return read(parsed)

    return of_text


def record(text: str) -> object:
    try:
        return record_from_json(text)
    except ValueError:
        return None  # callers say which file it is


def manifest(text: str) -> object:
    filesystem = MemoryFileSystem()
    filesystem.pipe_file(PLACE, text.encode("utf-8", "surrogatepass"))
    return read_manifest_file(filesystem, PLACE)


_TABLE = TableSchema("shop", "t", (Column("id", "int", Int(32), key=True),), ("id",))
_FILES = FileOffset(1, 5, 2, {"/a/b": 7}, {"/a/c": None, "/a/d": 9})
_STATE = TableState(
    ("shop", "t"),
    "lake.t",
    keys=("id",),
    columns=StructType().add("id", IntegerType()),
    truncates=((1, 2, 3),),
)

STATES: Mapping[str, tuple[str, Read]] = {
    "offset of topics": (
        json.dumps(StreamOffset({("t", 0): 1}, {("t", 0): 5}, {"t": "x"}).to_json()),
        of_spark(lambda offset: StreamOffset.of_json(offset).ranges()),
    ),
    "offset of files": (
        json.dumps(_FILES.to_json()),
        of_spark(lambda offset: FileOffset.from_json(offset).unread([FileInfo("/a/b", 1)])),
    ),
    "state of a table": (_STATE.to_json(), TableState.from_json),
    "table schema": (record_to_json(SchemaRecord(_TABLE, (7,), "")), record),
    "manifest": (
        json.dumps({"version": 1, "files": ["a", "b"], "replaces": ["c"]}),
        manifest,
    ),
    "option assign": ('{"t": [0, 1]}', parse_assign),
    "option startingOffsets": (
        '{"t": {"0": 23, "1": -2}}',
        lambda text: parse_offsets("startingOffsets", text, -2),
    ),
    "option storageOptions": ('{"key": "a", "secret": 1}', parse_storage_options),
    "option keys": ('{"shop.t": "id", "a.b": "c"}', lambda text: by_table("keys", {"keys": text})),
}
"""Valid texts, and their readers."""


def damage(name: str, dice: random.Random) -> str | None:
    """Read a damaged text; returns the fault of its error, if any."""
    valid, read = STATES[name]
    made = mutant([Message(None, valid.encode())], "json", dice)
    text = (made.value or b"").decode("utf-8", "replace")
    try:
        read(text)
    except CdcfmtError:
        pass
    except Exception as error:
        path = findings.save("state", [made], {"problem": repr(error), "state": name})
        return f"{name}: {error!r:.200} in {path}"
    return None


def run(seconds: float) -> list[Row]:
    """Mutants of each text in turn."""
    row = Row(campaign=NAME, target="offsets, states and options")
    dice = random.Random(time.time())
    until = time.monotonic() + seconds
    while not row.runs or time.monotonic() < until:
        for name in STATES:
            row.runs += 1
            row.events += 1
            problem = damage(name, dice)
            if problem:
                row.different += 1
                row.notes.append(problem)
    return [row]
