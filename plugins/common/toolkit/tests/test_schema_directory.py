from __future__ import annotations

import multiprocessing
import pickle
import resource
import time
from pathlib import Path

import pytest

from cdcfmt_core.caches import table_size
from cdcfmt_core.errors import MissingSchemaError, SourceError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import Note, SchemaRecord
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Int
from cdcfmt_toolkit import schema_directory as module
from cdcfmt_toolkit.schema_directory import SchemaDirectory
from cdcfmt_toolkit.schema_json import record_to_json


def record(version: int, table: str = "orders", schema: str | None = None) -> SchemaRecord:
    columns = tuple(Column(f"c{at}", "int", Int(32)) for at in range(version))
    return SchemaRecord(TableSchema("shop", table, columns, ("c0",), schema), (version,))


def texts(records: list[SchemaRecord]) -> set[str]:
    return {record_to_json(record) for record in records}


@pytest.fixture(params=["local", "memory"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> SchemaDirectory:
    if request.param == "memory":
        return SchemaDirectory(f"memory://{tmp_path.name}-{time.time_ns()}/schemas")
    return SchemaDirectory(str(tmp_path / "schemas"))


def test_saved_schemas_are_loaded(directory: SchemaDirectory) -> None:
    saved = [record(1), record(2), record(2, "other"), record(3, schema="dbo")]
    assert [directory.save(one) for one in saved] == [True] * 4
    again = SchemaDirectory(directory.uri)
    assert texts(again.load("shop", "orders")) == texts(saved[:2])
    assert texts(again.load("shop", "orders", "dbo")) == texts(saved[3:])
    assert texts([entry.record for entry in again.entries() if entry.record]) == texts(saved)


def test_a_schema_is_written_once(directory: SchemaDirectory) -> None:
    assert directory.save(record(1))
    assert not directory.save(record(1))
    assert not SchemaDirectory(directory.uri).save(record(1))
    assert len(list(directory.entries())) == 1


def test_a_process_reads_each_file_once(directory: SchemaDirectory) -> None:
    directory.save(record(1))
    (known,) = directory.load("shop", "orders")
    directory.save(record(2))
    again = SchemaDirectory(directory.uri).load("shop", "orders")
    assert any(each is known for each in again)
    assert texts(again) == texts([record(1), record(2)])
    directory.forget(next(iter(directory.entries())).name)
    assert len(directory.load("shop", "orders")) == 1, "the folder says what there is"


def test_empty_directory_has_no_schemas(directory: SchemaDirectory) -> None:
    assert directory.load("shop", "orders") == []
    directory.check()
    assert list(directory.entries()) == []


def test_directory_is_picklable(directory: SchemaDirectory) -> None:
    directory.save(record(1))
    assert texts(pickle.loads(pickle.dumps(directory)).load("shop", "orders")) == texts([record(1)])


def test_names_differing_in_case_or_punctuation_are_distinct(directory: SchemaDirectory) -> None:
    names = [
        "Orders",
        "orders",
        "or.ders",
        "or/ders",
        "../orders",
        "注文" * 60,
        "a" * 64,
        "x\udcff",
    ]
    for name in names:
        directory.save(record(1, name))
    for name in names:
        assert [found.table.table for found in directory.load("shop", name)] == [name]


def test_table_names_cannot_escape_the_folder(tmp_path: Path) -> None:
    directory = SchemaDirectory(str(tmp_path / "schemas"))
    directory.save(record(1, "../../../up"))
    assert [path.name for path in tmp_path.iterdir()] == ["schemas"]


def _save_all(uri: str, versions: range) -> None:
    directory = SchemaDirectory(uri)
    for version in versions:
        directory.save(record(version))


@pytest.mark.slow
def test_many_tasks_may_write_the_same(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    tasks = [
        context.Process(target=_save_all, args=(str(tmp_path / "schemas"), range(1, 40)))
        for _ in range(4)
    ]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert [task.exitcode for task in tasks] == [0, 0, 0, 0]
    found = [entry.record for entry in SchemaDirectory(str(tmp_path / "schemas")).entries()]
    assert sorted(one.position for one in found if one) == [(version,) for version in range(1, 40)]
    assert not list((tmp_path / "schemas").rglob("_*"))


def test_partial_files_are_ignored(tmp_path: Path) -> None:
    directory = SchemaDirectory(str(tmp_path))
    directory.save(record(1))
    (folder,) = tmp_path.iterdir()
    (folder / "_aside").write_text("{")
    (folder / ".hidden.json").write_text("{")
    assert texts(directory.load("shop", "orders")) == texts([record(1)])


def test_a_note_replaces_those_of_earlier_batches_of_its_query(directory: SchemaDirectory) -> None:
    def noted(query: str, start: int, text: str) -> bool:
        return directory.noted(Note(text, "shop", "orders", batch=(query, start)))

    directory.save(record(1))
    always = Note("always", "shop", "orders")
    directory.note(always)
    for query, start, text in (("a", 9, "1"), ("b", 9, "1"), ("a", 10, "1"), ("a", 10, "2")):
        directory.note(Note(text, "shop", "orders", batch=(query, start)))
    assert [noted("a", 10, "1"), noted("a", 10, "2"), noted("b", 9, "1")] == [True] * 3
    assert not noted("a", 9, "1")
    assert directory.noted(always)
    assert texts(directory.load("shop", "orders")) == texts([record(1)])


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    directory = SchemaDirectory(str(tmp_path / "schemas"))
    small, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, most))
    try:
        with pytest.raises(SourceError, match=r"schema store .*File too large; set schemaStore"):
            directory.save(record(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (small, most))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert directory.save(record(1))


@pytest.mark.parametrize("text", ["", "{", "not a schema", '{"format": 99}'])
def test_error_names_the_invalid_schema_file(tmp_path: Path, text: str) -> None:
    directory = SchemaDirectory(str(tmp_path))
    directory.save(record(1))
    (folder,) = tmp_path.iterdir()
    (folder / "bad.json").write_text(text)
    with pytest.raises(SourceError, match=r"bad\.json.*schemaStore"):
        directory.load("shop", "orders")


def test_uncreatable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    directory = SchemaDirectory(str(tmp_path / "file" / "schemas"))
    with pytest.raises(SourceError, match="schemaStore"):
        directory.check()
    with pytest.raises(SourceError, match="schemaStore"):
        directory.save(record(1))


def test_oversized_schema_is_skipped(
    directory: SchemaDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    large = record(1000)
    limit = len(record_to_json(large)) - 1
    monkeypatch.setattr(module, "MAX_SCHEMA_BYTES", limit)
    assert not directory.save(large)
    assert "a schema of shop.orders is not stored" in caplog.text
    # An oversized file from another version does not affect the table's other schemas.
    assert directory.save(record(1))
    monkeypatch.undo()
    assert directory.save(large)
    monkeypatch.setattr(module, "MAX_SCHEMA_BYTES", limit)
    again = SchemaDirectory(directory.uri)
    assert texts(again.load("shop", "orders")) == texts([record(1)])
    assert "is skipped: it has" in caplog.text
    broken = [entry for entry in again.entries() if entry.problem]
    assert [entry.size for entry in broken] == [limit + 1]
    again.forget(broken[0].name)
    assert [entry.record is None for entry in again.entries()] == [False]


def test_store_with_folder_reloads_evicted_schemas(directory: SchemaDirectory) -> None:
    size = table_size(record(3).table) + 300
    store = SchemaStore(2 * size, directory)
    for number in range(20):
        for version in (1, 2, 3):
            store.add(record(version, f"t{number}"))
    assert store.bytes <= 2 * size
    for number in (0, 10, 19, 0):
        found = store.find("shop", f"t{number}", (2,))
        assert found is not None
        assert len(found.columns) == 2
        (exact,) = store.at("shop", f"t{number}", (3,))
        assert len(exact.columns) == 3
    assert store.bytes <= 2 * size
    # One table exceeds the bound by itself: only its oldest schema is an error.
    for version in range(4, 20):
        store.add(record(version, "t0"))
    with pytest.raises(MissingSchemaError, match="maxCachedSchemaBytes"):
        store.find("shop", "t0", (1,))
    newest = store.find("shop", "t0", (99,))
    assert newest is not None
    assert len(newest.columns) == 19
