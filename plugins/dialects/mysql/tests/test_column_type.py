"""Type texts of every origin, and invalid texts."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_mysql.column_type import MAX_TEXT_LENGTH, ColumnType, parse_column_type

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("int", "int", {}),
    ("  INT\t", "int", {}),
    ("INT(11)", "int", {"params": (11,)}),
    ("int unsigned", "int", {"unsigned": True}),
    ("int unsigned zerofill", "int", {"unsigned": True, "zerofill": True}),
    ("int(10) zerofill", "int", {"params": (10,), "unsigned": True, "zerofill": True}),
    ("unsigned bigint", "bigint", {"unsigned": True}),
    ("unsigned", "unsigned", {}),
    ("int signed not null auto_increment primary key", "int", {}),
    ("TINYINT(2) unsigned", "tinyint", {"params": (2,), "unsigned": True}),
    ("bigint(20)unsigned", "bigint", {"params": (20,), "unsigned": True}),
    ("decimal(10,4)", "decimal", {"params": (10, 4)}),
    (
        "decimal(10, 4) unsigned zerofill",
        "decimal",
        {"params": (10, 4), "unsigned": True, "zerofill": True},
    ),
    ("DECIMAL(8, 0)", "decimal", {"params": (8, 0)}),
    ("decimal ( 8 , 0 )", "decimal", {"params": (8, 0)}),
    ("FIXED(40,3)", "decimal", {"params": (40, 3)}),
    ("numeric", "decimal", {}),
    ("dec(5)", "decimal", {"params": (5,)}),
    (
        "DOUBLE PRECISION(10,7) unsigned zerofill",
        "double",
        {"params": (10, 7), "unsigned": True, "zerofill": True},
    ),
    ("double  /* wide */ precision", "double", {}),
    ("double", "double", {}),
    ("real", "double", {}),
    ("float(10,3)", "float", {"params": (10, 3)}),
    ("float4", "float", {}),
    ("FLOAT8", "double", {}),
    ("bool", "tinyint", {"params": (1,)}),
    ("BOOLEAN not null", "tinyint", {"params": (1,)}),
    ("SERIAL", "bigint", {"unsigned": True}),
    ("int1", "tinyint", {}),
    ("int2", "smallint", {}),
    ("int3", "mediumint", {}),
    ("int4", "int", {}),
    ("int8 unsigned", "bigint", {"unsigned": True}),
    ("integer(5)", "int", {"params": (5,)}),
    ("middleint", "mediumint", {}),
    ("char varying(20)", "varchar", {"params": (20,)}),
    ("character varying(20)", "varchar", {"params": (20,)}),
    ("character(10)", "char", {"params": (10,)}),
    ("national varchar(10)", "varchar", {"params": (10,)}),
    ("national character varying(10)", "varchar", {"params": (10,)}),
    ("nchar(3)", "char", {"params": (3,)}),
    ("nvarchar(3)", "varchar", {"params": (3,)}),
    ("char byte", "binary", {}),
    ("long", "mediumtext", {}),
    ("long varchar", "mediumtext", {}),
    ("LONG VARBINARY", "mediumblob", {}),
    ("char(3) character set latin1", "char", {"params": (3,), "charset": "latin1"}),
    ("char character set latin1", "char", {"charset": "latin1"}),
    ("varchar(3) CHARSET 'UTF8MB4'", "varchar", {"params": (3,), "charset": "utf8mb4"}),
    ("text char set = gbk collate gbk_bin", "text", {"charset": "gbk"}),
    ("varchar(9) collate utf8mb4_bin charset gbk", "varchar", {"params": (9,), "charset": "gbk"}),
    ("varchar(9) collate binary", "varchar", {"params": (9,), "charset": "binary"}),
    ("varchar(9) binary", "varchar", {"params": (9,), "binary": True}),
    ("text ascii", "text", {"charset": "latin1"}),
    ("text unicode binary", "text", {"charset": "ucs2", "binary": True}),
    ("text charset", "text", {}),
    ("year(4)", "year", {"params": (4,)}),
    ("bit(10)", "bit", {"params": (10,)}),
    (
        "datetime(6) default current_timestamp(6) on update current_timestamp(6)",
        "datetime",
        {"params": (6,)},
    ),
    ("time(6)", "time", {"params": (6,)}),
    ("vector(3)", "vector", {"params": (3,)}),
    ("geomcollection", "geometrycollection", {}),
    ("point not null srid 4326", "point", {}),
    ("enum", "enum", {}),
    ("enum('a','b''c','c,d')", "enum", {"elements": ("a", "b'c", "c,d")}),
    (r"enum('a\'b','\\','\n\0\Z\%\_\x')", "enum", {"elements": ("a'b", "\\", "\n\0\x1a\\%\\_x")}),
    (r"enum('a\\''b')", "enum", {"elements": ("a\\'b",)}),
    ("""enum("a","b'","c""d",'e""f')""", "enum", {"elements": ("a", "b'", 'c"d', 'e""f')}),
    ("ENUM('A', 'ß', '')", "enum", {"elements": ("A", "ß", "")}),
    ("enum('unsigned','(') not null", "enum", {"elements": ("unsigned", "(")}),
    ("set('a','b','大 写')", "set", {"elements": ("a", "b", "大 写")}),
    ("set('a') charset binary", "set", {"elements": ("a",), "charset": "binary"}),
    ("int comment 'it''s unsigned'", "int", {}),
    ("int comment '(' unsigned", "int", {"unsigned": True}),
    ("varchar(3) default 'binary' binary", "varchar", {"params": (3,), "binary": True}),
    ("int default -1 unsigned", "int", {"unsigned": True}),
    ("bit(8) default b'101'", "bit", {"params": (8,)}),
    ("int as (cast(`a` as unsigned) + length(')')) stored", "int", {}),
    ("int generated always as (`unsigned`) virtual unique key", "int", {}),
    ("bigint /*T![auto_rand] AUTO_RANDOM(5) */ unsigned", "bigint", {"unsigned": True}),
    ("varchar(3) /*!50606 COLUMN_FORMAT FIXED */", "varchar", {"params": (3,)}),
    ("int check (a > 0) references t (`id`)", "int", {}),
    ("hstore", "hstore", {}),
    ("number(10)", "number", {"params": (10,)}),
]


@pytest.mark.parametrize(("text", "base", "expected"), CASES)
def test_parse(text: str, base: str, expected: dict[str, Any]) -> None:
    assert parse_column_type(text) == ColumnType(base, **expected)


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("", ""),
        ("   ", ""),
        ("(3)", ""),
        ("'int'", "'int'"),
        ("`int`", "`int`"),
        ("decimal(10", "decimal"),
        ("decimal(10,", "decimal"),
        ("decimal(10,4))", "decimal"),
        ("decimal()", "decimal"),
        ("decimal(a)", "decimal"),
        ("decimal(-1)", "decimal"),
        ("decimal('1')", "decimal"),
        ("decimal(1_0)", "decimal"),
        ("decimal(１)", "decimal"),
        ("decimal(99999999999)", "decimal"),
        ("VARCHAR(max)", "varchar"),
        ("enum(", "enum"),
        ("enum()", "enum"),
        ("enum('a'", "enum"),
        ("enum('a',)", "enum"),
        ("enum('a' 'b')", "enum"),
        ("enum('a", "enum"),
        ("enum('a\\", "enum"),
        ("enum(1,2)", "enum"),
        ("int comment 'a", "int"),
        ("int /* open", "int"),
        ("int default (1", "int"),
        ("int, int", "int"),
        ("timestamp without time zone", "timestamp"),
        ("timestamp(6) with local time zone", "timestamp"),
        ("bit varying(8)", "bit"),
        ("long raw", "long"),
        ("map<string,int>", "map<string"),
    ],
)
def test_malformed(text: str, base: str) -> None:
    assert parse_column_type(text) == ColumnType(base, well_formed=False)


def test_unknown_type_names_are_parsed() -> None:
    assert parse_column_type("İ(3)") == ColumnType("i\u0307", params=(3,))


@given(st.text())
def test_any_text(text: str) -> None:
    assert parse_column_type(text).base == parse_column_type(text).base.lower()


@given(st.lists(st.sampled_from(["int", "enum", "(", ")", ",", "'a'", "'", "\\", " ", "4", "="])))
def test_any_order_of_tokens(parts: list[str]) -> None:
    parse_column_type("".join(parts))


@given(st.lists(st.text(), min_size=1))
def test_elements_round_trip(elements: list[str]) -> None:
    def quoted(element: str, escapes: dict[str, str]) -> str:
        return "'" + "".join(escapes.get(letter, letter) for letter in element) + "'"

    for escapes in ({"'": "''", "\\": "\\\\"}, {"'": "\\'", "\\": "\\\\", "\n": "\\n"}):
        text = f"enum({','.join(quoted(element, escapes) for element in elements)})"
        assert parse_column_type(text) == ColumnType("enum", elements=tuple(elements))


@pytest.mark.parametrize("seed", ["'", "''", "'\\", "(", ")", "a ", "/*", "/", "`", '"', "a", " "])
@pytest.mark.parametrize("head", ["", "enum('", "int comment '", "int (", "int /*"])
def test_garbage_takes_linear_time(head: str, seed: str) -> None:
    for length in (MAX_TEXT_LENGTH, 1 << 20):
        text = (head + seed * (length // len(seed)))[:length]
        start = time.process_time()
        parse_column_type(text)
        assert time.process_time() - start < 5
