"""DDL, compressed values, claim checks, recognition."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
from open_messages import (
    DDL_KEY,
    ID,
    NAME,
    RESOLVED_KEY,
    ROW_KEY,
    TS,
    VERSION,
    data_of,
    decode,
    decode_ddl,
    frames,
    the_error,
)

from cdcfmt_core import default_registry
from cdcfmt_core.events import (
    Corrupt,
    Image,
    Message,
    RowChange,
    SchemaChange,
    Watermark,
)


@pytest.mark.parametrize(
    ("code", "query", "word", "name"),
    [
        (1, "create database test", "QUERY", "Create Schema"),
        (3, "CREATE TABLE test.t1(id int)", "CREATE", "Create Table"),
        ("3", "CREATE TABLE test.t1(id int)", "CREATE", "Create Table"),
        ("Create Table", "CREATE TABLE test.t1(id int)", "CREATE", "Create Table"),
        (4, "DROP TABLE `test`.`t1`", "ERASE", "Drop Table"),
        (5, "alter table t add a int", "ALTER", "Add Column"),
        (7, "alter table t add index i(a)", "CINDEX", "Add Index"),
        (10, "alter table t drop foreign key f", "DINDEX", "Drop Foreign Key"),
        (11, "truncate t", "TRUNCATE", "Truncate Table"),
        (14, "rename table a to b", "RENAME", "Rename Table"),
        (21, "create view v as select 1", "QUERY", "Create View"),
        (26, "alter database d charset utf8", "QUERY", "Modify Schema Charset And Collate"),
        (16, "alter table t shard_row_id_bits = 4", "ALTER", "Shard RowID"),
        (34, "create sequence s", "QUERY", "Create Sequence"),
        (36, "drop sequence s", "QUERY", "Drop Sequence"),
        # TiDB's, not the document's
        (42, "alter table t exchange partition p with table u", "QUERY", 42),
        (57, "alter table t cache", "QUERY", 57),
        (61, "alter table t add a int, add b int", "ALTER", 61),
        ("73", "create table t like u", "CREATE", 73),
        (250, "create unique index i on t(a)", "CINDEX", 250),
        ("something", "drop table t", "ERASE", "something"),
        (None, "drop table t", "ERASE", None),
    ],
)
def test_ddl(code: int | str | None, query: str, word: str, name: int | str | None) -> None:
    value = {"q": query} | ({} if code is None else {"t": code})
    ddl = decode_ddl(value)
    assert (ddl.query, ddl.ddl_type, ddl.commit_ts) == (query, word, TS)
    assert (ddl.database, ddl.table) == ("test", "t1")
    assert ddl.extra == (None if name is None else {"ddl_type": name})


def test_every_code_of_the_document_has_a_name_and_a_word() -> None:
    words = {code: decode_ddl({"q": "?", "t": code}).ddl_type for code in range(1, 37)}
    names = [(decode_ddl({"q": "?", "t": code}).extra or {})["ddl_type"] for code in range(1, 37)]
    assert len(set(names)) == 36
    assert all(isinstance(name, str) for name in names)
    assert {code for code, word in words.items() if word == "CINDEX"} == {7, 9, 32}
    assert {code for code, word in words.items() if word == "DINDEX"} == {8, 10, 33}
    assert {words[3], words[4], words[11], words[14]} == {"CREATE", "ERASE", "TRUNCATE", "RENAME"}


@pytest.mark.parametrize("names", [{}, {"tbl": ""}, {"scm": None, "tbl": None}])
def test_ddl_without_table(names: dict[str, Any]) -> None:
    key = {"ts": TS, "t": 2, "x": 1} | names
    ddl = decode_ddl({"q": "create database d", "t": 1, "y": 2}, key)
    assert (ddl.database, ddl.table) == ("", "")
    assert ddl.extra == {"x": 1, "y": 2, "ddl_type": "Create Schema"}


def test_compressed_values() -> None:
    row, ddl = {"u": {"id": ID}}, {"q": "drop table t1", "t": 4}
    compressed = [lz4.frame.compress(data_of(part)) for part in (row, ddl)]
    events = decode(
        [ROW_KEY, DDL_KEY, RESOLVED_KEY],
        [*compressed, b""],
        largeMessageHandleCompression="lz4",
    )
    assert [type(event) for event in events] == [RowChange, SchemaChange, Watermark]


CLAIM_KEY = {**ROW_KEY, "ohk": False, "ccl": "file:///gone/claims/1.json"}


WHOLE = {"u": {"id": ID, "n": NAME}}


def claim_file(key: Any, values: list[Any]) -> bytes:
    wrapped = {"key": VERSION + frames([key]), "value": frames(values)}
    return json.dumps(
        {name: base64.b64encode(data).decode() for name, data in wrapped.items()}
    ).encode()


@pytest.mark.parametrize(
    "body", [claim_file(ROW_KEY, [WHOLE]), frames([WHOLE])], ids=["wrapped", "bare"]
)
def test_claim_check(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "1.json").write_bytes(body)
    # Beside a complete row, as TiCDC batches them.
    first, second = decode(
        [CLAIM_KEY, ROW_KEY], [{"u": {"id": ID}}, {"u": {"id": ID}}], claims=tmp_path
    )
    assert isinstance(first, RowChange)
    assert isinstance(second, RowChange)
    assert first.after == Image({"id": 1, "n": "aa"})
    assert first.extra == {"claim_check": "file:///gone/claims/1.json"}
    assert second.extra is None


@pytest.mark.parametrize(
    ("key", "values", "reason"),
    [
        ({**ROW_KEY, "ts": 1}, [WHOLE], "it holds another event"),
        ({**ROW_KEY, "tbl": "t2"}, [WHOLE], "it holds another event"),
        (CLAIM_KEY, [WHOLE], "it leads to another one"),
        (ROW_KEY, [], "it holds 0 events"),
        (ROW_KEY, [WHOLE, WHOLE], "it holds 2 events"),
    ],
)
def test_claim_checks_of_something_else(
    tmp_path: Path, key: Any, values: list[Any], reason: str
) -> None:
    (tmp_path / "1.json").write_bytes(claim_file(key, values))
    error = the_error([CLAIM_KEY], [{"u": {"id": ID}}], claims=tmp_path)
    assert error.field == "value[0]"
    assert reason in error.reason


def test_claim_checks_that_cannot_be_read(tmp_path: Path) -> None:
    keys, values = [CLAIM_KEY, ROW_KEY], [{"u": {"id": ID}}] * 2
    for claims in (None, tmp_path):
        bad, good = decode(keys, values, claims=claims)
        assert isinstance(bad, Corrupt)
        assert isinstance(good, RowChange)
        assert "claimCheckStorageUri" in bad.error.reason


@pytest.mark.parametrize(
    ("key", "value", "mine"),
    [
        (VERSION + frames([ROW_KEY]), frames([WHOLE]), True),
        (VERSION, b"", True),
        (VERSION, None, True),
        (VERSION + b"\0\0\0", b"x", True),
        # The beginning of a registry's framing with the id 511, of 8 bytes.
        (VERSION + b"\xff\x02", b"x", False),
        (VERSION + b"\0\0\0\0\0\0\0\0\x02", b"x", False),
        # Some other format's key, the number 1.
        (VERSION, b'{"id":0}', False),
        (b"\0\0\0\0\0\0\0\2" + frames([ROW_KEY]), frames([WHOLE]), False),
        (b"\0\0\0\1", b"", False),
        (b"", b"", False),
        (None, frames([WHOLE]), False),
        (b'{"id":1}', b'{"database":"d","table":"t","type":"INSERT","es":1,"data":[]}', False),
    ],
)
def test_sniffing(key: bytes | None, value: bytes | None, mine: bool) -> None:
    sniff = default_registry().get_codec("open-protocol").sniff
    assert sniff(Message(key, value)) == (1.0 if mine else 0.0)
