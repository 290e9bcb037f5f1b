"""Every type text that real producers sent in the golden messages, and the map's edges."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core import types
from cdcfmt_core.types import (
    Binary,
    Bit,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Vector,
    Year,
)
from cdcfmt_mysql import MYSQL, resolve_type, type_map
from cdcfmt_mysql.type_map import RULES

# Of TiDB, as SHOW CREATE TABLE prints them; TiCDC sends them with content-compatible.
TIDB: dict[str, LogicalType] = {
    "bigint(20)": Int(64),
    "bigint(20) unsigned": Int(64, False),
    "binary(16)": Binary(),
    "binary(255)": Binary(),
    "binary(4)": Binary(),
    "bit(1)": Bit(1),
    "bit(10)": Bit(10),
    "bit(4)": Bit(4),
    "bit(64)": Bit(64),
    "bit(8)": Bit(8),
    "blob": Binary(),
    "char(10)": Text(),
    "char(16)": Text(),
    "char(5)": Text(),
    "date": Date(),
    "datetime": DateTime(),
    "datetime(3)": DateTime(3),
    "datetime(6)": DateTime(6),
    "decimal(10,2)": Decimal(10, 2),
    "decimal(10,4)": Decimal(10, 4),
    "decimal(20,0) unsigned": Decimal(20, 0),
    "decimal(20,4)": Decimal(20, 4),
    "decimal(20,5)": Decimal(20, 5),
    "decimal(30,10)": Decimal(30, 10),
    "decimal(65,0)": Decimal(65, 0),
    "decimal(65,30)": Decimal(65, 30),
    "double": Float(64),
    "double(16,4)": Float(64),
    "enum('','x')": Enum(("", "x")),
    "enum('a','b')": Enum(("a", "b")),
    "enum('a','b','c,d','e''f','中')": Enum(("a", "b", "c,d", "e'f", "中")),
    "enum('x','y')": Enum(("x", "y")),
    "float": Float(32),
    "float unsigned": Float(32),
    "float(10,3)": Float(32),
    "int(10) unsigned": Int(32, False),
    "int(10) unsigned zerofill": Int(32, False),
    "int(11)": Int(32),
    "json": Json(),
    "longblob": Binary(),
    "longtext": Text(),
    "mediumblob": Binary(),
    "mediumint(8) unsigned": Int(24, False),
    "mediumint(9)": Int(24),
    "mediumtext": Text(),
    "set('a','b')": Set(("a", "b")),
    "set('x','y')": Set(("x", "y")),
    "set('x','y','z','w','v')": Set(("x", "y", "z", "w", "v")),
    "smallint(5) unsigned": Int(16, False),
    "smallint(6)": Int(16),
    "text": Text(),
    "time": Time(),
    "time(3)": Time(3),
    "time(6)": Time(6),
    "timestamp": Timestamp(),
    "timestamp(3)": Timestamp(3),
    "timestamp(6)": Timestamp(6),
    "tinyblob": Binary(),
    "tinyint(1)": Int(8),
    "tinyint(3) unsigned": Int(8, False),
    "tinyint(4)": Int(8),
    "tinytext": Text(),
    "varbinary(20)": Binary(),
    "varbinary(255)": Binary(),
    "varbinary(300)": Binary(),
    "varchar(10)": Text(),
    "varchar(100)": Text(),
    "varchar(20)": Text(),
    "varchar(255)": Text(),
    "varchar(5)": Text(),
    "varchar(600)": Text(),
    "vector": Vector(),
    "vector(3)": Vector(),
    "year(4)": Year(),
}

# TiCDC's mysqlType without content-compatible.
TICDC: dict[str, LogicalType] = {
    "bigint": Int(64),
    "bigint unsigned": Int(64, False),
    "binary": Binary(),
    "bit": Bit(),
    "char": Text(),
    "decimal": Decimal(),
    "decimal unsigned": Decimal(),
    "enum": Enum(),
    "int": Int(32),
    "int unsigned": Int(32, False),
    "int unsigned zerofill": Int(32, False),
    "mediumint": Int(24),
    "mediumint unsigned": Int(24, False),
    "set": Set(),
    "smallint": Int(16),
    "smallint unsigned": Int(16, False),
    "tinyint": Int(8),
    "tinyint unsigned": Int(8, False),
    "varbinary": Binary(),
    "varchar": Text(),
    "year": Year(),
}

# Alibaba Canal over MariaDB, and other texts that Canal's tests and users show.
CANAL: dict[str, LogicalType] = {
    "bigint(20)": Int(64),
    "bigint(20) unsigned": Int(64, False),
    "binary(8)": Binary(),
    "bit(20)": Bit(20),
    "decimal(12,4)": Decimal(12, 4),
    "decimal(20,0)": Decimal(20, 0),
    "enum('small','大','with,comma','')": Enum(("small", "大", "with,comma", "")),
    "geometry": Geometry(),
    "point": Geometry(),
    "set('a','b','大 写')": Set(("a", "b", "大 写")),
    "varbinary(50)": Binary(),
    "varchar(200)": Text(),
    "varchar(30)": Text(),
    "varchar(50)": Text(),
    "DOUBLE PRECISION(10,7) unsigned zerofill": Float(64),
    "SERIAL": Int(64, False),
    "FIXED(40,3)": Decimal(40, 3),
    "DECIMAL(8, 0)": Decimal(8, 0),
    "TINYINT(2) unsigned": Int(8, False),
}

EDGES: dict[str, LogicalType | None] = {
    "bool": Int(8),
    "boolean": Int(8),
    "unsigned int": Int(32, False),
    "float(24)": Float(32),
    "float(25)": Float(64),
    "float(53)": Float(64),
    "float(54)": None,
    "float(30,2)": Float(32),
    "decimal(0)": Decimal(),
    "decimal(65,65)": Decimal(65, 65),
    "decimal(66)": None,
    "decimal(3,4)": None,
    "bit(0)": Bit(),
    "bit(65)": None,
    "time(0)": Time(0),
    "time(7)": None,
    "datetime(7)": None,
    "timestamp(9)": None,
    "char(3) character set latin1": Text("latin1"),
    "nvarchar(3)": Text(),
    "text charset binary": Binary(),
    "longtext collate binary": Binary(),
    "enum('a') charset binary": Enum(("a",)),
    "varchar(3) binary": Text(),
    "inet6": Text(),
    "uuid": Text(),
    "geomcollection": Geometry(),
    "": None,
    "decimal(10": None,
    "enum('a'": None,
    "timestamp without time zone": None,
    "hstore": None,
    "int[]": None,
    "null": None,
}


@pytest.mark.parametrize(
    ("text", "expected"), [*TIDB.items(), *TICDC.items(), *CANAL.items(), *EDGES.items()]
)
def test_resolve(text: str, expected: LogicalType | None) -> None:
    assert resolve_type(text) == expected
    if expected is None or "'" not in text:
        assert resolve_type(f" {text.upper()}\n") == expected


def test_the_docstring_is_the_table() -> None:
    documented = set()
    for item in re.findall(r"^- (.*?)(?=^- |^$|\Z)", type_map.__doc__ or "", re.M | re.S):
        texts, _, result = item.partition("→")
        logical = eval(re.findall(r"``(.+?)``", result)[0], vars(types).copy())
        for text in re.findall(r"``(.+?)``", texts):
            assert resolve_type(text) == logical, text
            documented.add(text)
    assert {text for text in documented if text.isalnum()} == set(RULES)


def test_the_registered_map() -> None:
    assert MYSQL.name == "mysql"
    assert MYSQL.resolve("bit(3)") == Bit(3)
    assert MYSQL.summary
    assert MYSQL.overrides is None


def test_equal_texts_share_one_object() -> None:
    long = "enum(" + ",".join(f"'{number:040}'" for number in range(100)) + ")"
    for text in ("decimal(10,4)", long):
        assert resolve_type(text) is resolve_type(text)


@given(st.text())
def test_any_text(text: str) -> None:
    resolve_type(text)


@given(st.sampled_from(sorted(RULES)), st.text(alphabet="(),'0123456789 aunsigned"))
def test_any_text_after_a_name(name: str, rest: str) -> None:
    resolve_type(name + rest)
