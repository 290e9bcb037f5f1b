"""A folder of table schemas, shared by tasks and kept across restarts.

One file holds one schema of one table.  Its name is a digest of its content, and a complete file is
moved to it, so that tasks may write concurrently: files of the same name are equal.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

import attrs

from cdcfmt_core.caches import Cache, table_size, text_size
from cdcfmt_core.errors import SourceError
from cdcfmt_core.schemas.records import Note, Persistence, SchemaRecord
from cdcfmt_core.schemas.store import MAX_SCHEMA_BYTES
from cdcfmt_core.texts import open_logger, qualified
from cdcfmt_toolkit.filesystem import FileSystem, open_filesystem
from cdcfmt_toolkit.schema_json import record_from_json, record_to_json

_SUFFIX = ".json"
_KEPT = ".schema"
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")

logger = open_logger("cdcfmt_core")

_read: Cache[tuple[str, str, int], SchemaRecord] = Cache(32 << 20)
"""The files that this process has read.  They never change, and each task of a stream loads its
tables again, with one file per ALTER."""
_reading = Lock()


@attrs.frozen
class Entry:
    """A file of the folder; ``problem``: why it has no valid schema, or None."""

    name: str
    size: int
    record: SchemaRecord | None
    problem: str | None


@attrs.define
class SchemaDirectory(Persistence):
    """The schemas in the folder ``uri``, on any filesystem of fsspec.

    Every method also raises MissingDependencyError if a library is missing.
    """

    uri: str
    storage_options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    _saved: set[str] = attrs.field(factory=set, init=False, repr=False, eq=False)

    def check(self) -> None:
        """Create the folder if it is missing; an early check that it is usable."""
        filesystem, root = self._open()
        with self._failing_at(root):
            filesystem.makedirs(root, exist_ok=True)

    def save(self, record: SchemaRecord) -> bool:
        """Write a schema unless it exists; True if it was written.

        A schema that is too large for readers is skipped, with a warning.
        """
        table = record.table
        size, data = table_size(table), b""
        if size <= MAX_SCHEMA_BYTES:
            data = record_to_json(record).encode()
            size = len(data)
        if size > MAX_SCHEMA_BYTES:
            logger.warning(
                "schema store: a schema of %s is not stored: it has %d bytes, more than %d",
                qualified(table.database, table.table),
                size,
                MAX_SCHEMA_BYTES,
            )
            return False
        folder = _folder_of(table.database, table.schema, table.table)
        return self._write(folder, data, _SUFFIX)

    def note(self, note: Note) -> None:
        """Store a note; removes those of earlier batches, which are not read again."""
        filesystem, root = self._open()
        path = f"{root}/{_path_of(note)}"
        folder = path.rpartition("/")[0]
        with self._failing_at(path):
            filesystem.makedirs(folder, exist_ok=True)
            self._put(filesystem, path, note.text.encode("utf-8", "backslashreplace"))
            others = [] if note.batch is None else filesystem.ls(folder, detail=False)
            for other in map(str, others):
                if _replaces(note, other.rpartition("/")[2]):
                    # Another task may remove it, too.
                    with suppress(OSError):
                        filesystem.rm_file(other)

    def noted(self, note: Note) -> bool:
        """Whether the note exists."""
        filesystem, root = self._open()
        path = f"{root}/{_path_of(note)}"
        with self._failing_at(path):
            return filesystem.exists(path)

    def keep(self, folder: str, data: bytes) -> bool:
        """Write data to a folder unless it is there; True if it was written."""
        return self._write(folder, data, _KEPT)

    def kept(self, folder: str) -> list[bytes]:
        """The data of a folder, in no particular order."""
        filesystem, root = self._open()
        found = []
        with self._failing_at(f"{root}/{folder}"):
            if filesystem.isdir(f"{root}/{folder}"):
                for path in map(str, filesystem.ls(f"{root}/{folder}", detail=False)):
                    if path.endswith(_KEPT) and not path.rpartition("/")[2].startswith("_"):
                        found.append(self._bytes_of(filesystem, path))
        return found

    def load(self, database: str, table: str, schema: str | None = None) -> list[SchemaRecord]:
        """All schemas of one table, in no particular order."""
        filesystem, root = self._open()
        return list(self._read(filesystem, f"{root}/{_folder_of(database, schema, table)}"))

    def entries(self) -> Iterator[Entry]:
        """Every schema file, sorted by name, including unreadable ones.

        :raises SourceError: if the folder does not exist.
        """
        filesystem, root = self._open()
        if not filesystem.isdir(root):
            raise SourceError(f"schema store {self.uri}: the folder does not exist")
        for path, size in self._find(filesystem, root):
            name = path.removeprefix(f"{root}/")
            try:
                yield Entry(name, size, self._read_one(filesystem, path), None)
            except SourceError as error:
                yield Entry(name, size, None, str(error.__cause__))

    def forget(self, name: str) -> None:
        """Delete one file of :meth:`entries`."""
        filesystem, root = self._open()
        with self._failing_at(f"{root}/{name}"):
            filesystem.rm_file(f"{root}/{name}")
        self._saved.discard(name)

    def _open(self) -> tuple[FileSystem, str]:
        filesystem, root = open_filesystem(self.uri, self.storage_options)
        # Other tasks write here too.
        filesystem.invalidate_cache()
        return filesystem, root.rstrip("/")

    def _write(self, folder: str, data: bytes, suffix: str) -> bool:
        name = f"{folder}/{hashlib.sha256(data).hexdigest()[:32]}{suffix}"
        if name in self._saved:
            return False
        filesystem, root = self._open()
        path = f"{root}/{name}"
        with self._failing_at(path):
            written = not filesystem.exists(path)
            if written:
                filesystem.makedirs(f"{root}/{folder}", exist_ok=True)
                self._put(filesystem, path, data)
        self._saved.add(name)
        return written

    def _put(self, filesystem: FileSystem, path: str, data: bytes) -> None:
        folder, _, _ = path.rpartition("/")
        aside = f"{folder}/_{uuid.uuid4().hex}"
        try:
            with filesystem.open(aside, "wb") as file:
                file.write(data)
            filesystem.mv(aside, path)
        except OSError:
            # On a full disk, each attempt would leave its file.
            with suppress(OSError):
                filesystem.rm_file(aside)
            # Another task may have been faster; its file is equal.
            if not filesystem.exists(path):
                raise

    def _read(self, filesystem: FileSystem, folder: str) -> Iterator[SchemaRecord]:
        for path, size in self._find(filesystem, folder):
            if size > MAX_SCHEMA_BYTES:
                # Another version wrote it; still use the table's other schemas.
                logger.warning(
                    "schema store %s: %s is skipped: it has %d bytes, more than %d; "
                    "cdcfmt schemas forget --broken deletes it",
                    self.uri,
                    path,
                    size,
                    MAX_SCHEMA_BYTES,
                )
                continue
            key = self.uri, path, size
            with _reading:
                known = _read.get(key)
            if known is None:
                known = self._read_one(filesystem, path)
                with _reading:
                    _read.add(key, known, text_size(path) + table_size(known.table))
            yield known

    def _find(self, filesystem: FileSystem, folder: str) -> Iterator[tuple[str, int]]:
        """The paths and sizes of schema files."""
        with self._failing_at(folder):
            try:
                found = filesystem.find(folder, detail=True)
            except FileNotFoundError:
                return
        for path in sorted(found):
            if path.endswith(_SUFFIX) and not path.rpartition("/")[2].startswith(("_", ".")):
                yield path, found[path].get("size") or 0

    def _read_one(self, filesystem: FileSystem, path: str) -> SchemaRecord:
        with self._failing_at(path):
            return record_from_json(self._bytes_of(filesystem, path))

    def _bytes_of(self, filesystem: FileSystem, path: str) -> bytes:
        with filesystem.open(path, "rb") as file:
            data: bytes = file.read(MAX_SCHEMA_BYTES + 1)
        if len(data) > MAX_SCHEMA_BYTES:
            raise ValueError(f"it has more than {MAX_SCHEMA_BYTES} bytes")
        return data

    @contextmanager
    def _failing_at(self, path: str) -> Iterator[None]:
        """:raises SourceError: for a file or folder that cannot be used."""
        try:
            yield
        except (OSError, ValueError) as error:
            raise SourceError(
                f"schema store {self.uri}: {path}: {error}; set schemaStore to a folder that can "
                "be read and written, and holds only files of cdcfmt"
            ) from error


def _folder_of(database: str, schema: str | None, table: str) -> str:
    # Readable, and unique by the digest: names may be long, or differ only in case.
    exact = json.dumps([database, schema, table])
    parts = [part for part in (database, schema, table) if part is not None]
    readable = ".".join(_UNSAFE_IN_NAMES.sub("-", part)[:48] for part in parts)
    return f"{readable}-{_digest(exact, 16)}"


def _path_of(note: Note) -> str:
    """The file of a note."""
    start = "" if note.batch is None else f"{note.batch[1]:020d}-"
    folder = _folder_of(note.database, note.schema, note.table)
    return f"{folder}/{_prefix_of(note)}{start}{_digest(note.text, 32)}"


def _prefix_of(note: Note) -> str:
    return "_note-" if note.batch is None else f"_note-{_digest(note.batch[0], 16)}-"


def _replaces(note: Note, name: str) -> bool:
    """Whether a file of the same folder is a note of an earlier batch of the query."""
    prefix = _prefix_of(note)
    if note.batch is None or not name.startswith(prefix):
        return False
    return name.removeprefix(prefix) < f"{note.batch[1]:020d}"


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
