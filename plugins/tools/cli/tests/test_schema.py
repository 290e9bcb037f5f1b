"""``cdcfmt schema``: columns, Spark's types and SQL, from the wire."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.canal_messages import INSERT, ddl_message, row_message, write_lines
from support.cli_tools import run, run_json, run_lines, write_messages
from support.golden_data import load_variant, native_messages

from cdcfmt_cli.observed_schemas import ObservedSchema
from cdcfmt_cli.reading import Reader
from cdcfmt_core import Column, TableSchema
from cdcfmt_core.types import Unknown
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schema") / "canal.jsonl"
    return write_messages(path, native_messages("canal/canal_flat"))


def test_spark_types_are_the_bridges(canal: Path) -> None:
    found = run_json("schema", canal, "--table", "shop.wide", "--as", "json")
    by_name = {column["name"]: column for column in found["columns"]}
    assert found["key_columns"] == ["id"]
    assert by_name["id"]["source_type"] == "bigint(20) unsigned"
    assert by_name["id"]["type"] == "Int(64) unsigned"
    assert by_name["id"]["spark_type"] == "decimal(20,0)"
    assert by_name["c_dec2"]["spark_type"] == "decimal(10,2)"
    assert by_name["c_point"]["spark_type"] == "struct<srid:int,wkb:binary,wkt:string>"
    from cdcfmt_mysql import resolve_type

    for column in found["columns"]:
        if column["name"] not in ("c_json", "c_point", "c_geom"):
            expected = spark_type(resolve_type(column["source_type"]), TypeOptions())
            assert column["spark_type"] == expected.simpleString(), column


def test_the_ddl_is_sparks(canal: Path) -> None:
    from pyspark.sql.types import StructType

    result = run("schema", canal, "--table", "shop.wide", "--as", "spark")
    assert "id DECIMAL(20,0),\n" in result.stdout
    names = [
        column["name"]
        for column in run_json("schema", canal, "--table", "shop.wide", "--as", "json")["columns"]
    ]
    assert [line.split()[0] for line in result.stdout.splitlines()] == names
    delta = run("schema", canal, "--table", "shop.wide", "--as", "delta").stdout
    head, *columns, tail = delta.splitlines()
    assert (head, tail) == ("CREATE TABLE shop.wide (", ") USING delta;")
    assert [line.removeprefix("  ") for line in columns] == result.stdout.splitlines()
    odd = run("schema", canal, "--table", "shop.`订 单`", "--as", "spark").stdout
    assert "`编号`" in odd
    assert StructType is not None


def test_names_that_look_like_numbers_to_spark(tmp_path: Path) -> None:
    names = ("123", "1e5", "1st", "select", "_x", "a-b", "a`b")
    row = row_message("INSERT", dict.fromkeys(names, "1"), types=dict.fromkeys(names, "int"))
    path = write_lines(tmp_path / "m.json", row | {"table": "2024"})
    quoted = ["`123` INT", "`1e5` INT", "`1st` INT", "select INT", "_x INT", "`a-b` INT",
              "`a``b` INT"]  # fmt: skip
    of_spark = run("schema", path, "--table", "shop.2024", "--as", "spark").stdout
    assert of_spark == ",\n".join(quoted) + "\n"
    of_delta = run("schema", path, "--table", "shop.2024", "--as", "delta").stdout
    columns = ",\n  ".join(quoted)
    assert of_delta == f"CREATE TABLE shop.`2024` (\n  {columns}\n) USING delta;\n"


def test_options_of_types(canal: Path) -> None:
    def of(*options: str) -> str:
        given = [part for option in options for part in ("-o", option)]
        return run("schema", canal, "--table", "shop.wide", "--as", "spark", *given).stdout

    assert "c_time STRING" in of()
    assert "c_time BIGINT" in of("timeAs=micros")
    assert "c_enum INT" in of("enumAs=index")
    bad = run("schema", canal, "--table", "shop.wide", "--as", "spark", "-o", "timeAs=hours")
    assert (bad.exit_code, "one of string, interval, micros" in bad.stderr) == (2, True)


def test_create_table_with_source_types(canal: Path) -> None:
    text = run("schema", canal, "--table", "shop.pair", "--as", "create-table").stdout
    first, *rest = text.splitlines()
    assert first.startswith("CREATE TABLE pair (a INT NOT NULL")
    assert rest[0] == (
        "ALTER TABLE pair ADD COLUMN extra DECIMAL(12,4) DEFAULT 1.5 AFTER v, "
        "ADD COLUMN last VARCHAR(10);"
    )
    assert all(line.endswith(";") for line in rest)


def test_create_table_from_types_without_a_statement(tmp_path: Path) -> None:
    messages = (m for m in native_messages("canal/canal_flat") if b'"isDdl":false' in m.value)  # type: ignore[operator]
    path = write_messages(tmp_path / "m.jsonl", messages)
    text = run("schema", path, "--table", "shop.wide", "--as", "create-table").stdout
    assert text.startswith("CREATE TABLE `shop`.`wide` (\n  `id` bigint(20) unsigned,\n")
    assert text.endswith("  PRIMARY KEY (`id`)\n);\n")
    plain = (g.message for g in load_variant("canal-json", "default").messages if g.kind == "row")
    path = write_messages(tmp_path / "plain.jsonl", plain)
    text = run("schema", path, "--table", "golden.all_types", "--as", "create-table").stdout
    assert "this wire has no lengths" in text
    # Digits as the values have them: MySQL takes the bare word for DECIMAL(10, 0).
    for column in ("`c_dec` decimal(38,4),", "`c_dec_big` decimal(65,30),"):
        assert column in text


def test_create_table_marks_unknown_types() -> None:
    # As in formats without types.
    table = TableSchema("shop", "t", (Column("a", "", Unknown(), key=True),), ("a",))
    schema = ObservedSchema(table.name)
    schema.add(table, whole=True)
    assert "  `a` /* of an unknown type */,\n  PRIMARY KEY (`a`)\n" in schema.create_table()


def test_truncate_adds_no_schema(tmp_path: Path) -> None:
    create = "create table orders (id int primary key, price decimal(10,2))"
    path = write_lines(
        tmp_path / "m.json",
        ddl_message(create, "CREATE"),
        INSERT,
        ddl_message("truncate table orders", "TRUNCATE"),
        ddl_message("alter table orders add column n int", "ALTER"),
    )
    text = run("schema", path, "--table", "shop.orders", "--as", "create-table").stdout
    assert text.splitlines() == [f"{create};", "alter table orders add column n int;"]


@pytest.mark.parametrize("table", [("--table", "shop.orders"), ()])
@pytest.mark.parametrize("shape", ["spark", "delta"])
def test_digits_that_only_values_show_are_noted(
    tmp_path: Path, shape: str, table: tuple[str, ...]
) -> None:
    plain = row_message("INSERT", {"id": "1", "price": "1.50"}, types={"price": "decimal"})
    for message, noted in ((plain, True), (INSERT, False)):
        path = write_lines(tmp_path / "m.json", message)
        result = run("schema", path, "--as", shape, *table)
        assert ("DECIMAL(38,2)" in result.stdout) == noted
        warning = (
            "shop.orders: the messages do not have the digits of DECIMAL columns (price), whose"
        )
        assert (warning in result.stderr) == noted


def test_list_of_tables(canal: Path) -> None:
    text = run("schema", canal).stdout
    for name in ("shop.wide", "shop.pair", "shop.`订 单`"):
        assert name in text
    missing = run("schema", canal, "--table", "shop.wied")
    assert missing.exit_code == 1
    assert "did you mean shop.wide" in missing.stderr


def test_a_table_without_rows(canal: Path) -> None:
    for shape in ("spark", "delta"):
        for options, reason in (
            (("--table", "shop.wied"), "shop.wied is in the input; did you mean shop.wide?"),
            (
                ("--table", "shop.pair", "--kind", "ddl"),
                "shop.pair is in the input, only other events of it",
            ),
        ):
            result = run("schema", canal, "--as", shape, *options)
            assert result.exit_code == 1
            assert result.stderr.splitlines()[-1] == f"error: no row of table {reason}"
    shown = run("schema", canal, "--table", "shop.pair", "--kind", "ddl")
    assert shown.exit_code == 0
    assert "no row of table shop.pair is in the input, only other events of it" in shown.stderr
    gone = run("schema", canal.with_name("no"), "--table", "shop.pair", "--as", "spark")
    assert gone.exit_code == 3


def test_without_the_bridge(canal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark_cdcfmt.cli.schema", None)
    result = run("schema", canal, "--table", "shop.wide")
    assert result.exit_code == 0
    assert "bigint(20) unsigned" in result.stdout
    assert "pip install 'pyspark-cdcfmt[spark]'" in result.stderr
    ddl = run("schema", canal, "--table", "shop.wide", "--as", "spark")
    assert ddl.exit_code == 3
    assert run("schema", canal, "--table", "shop.wide", "--as", "create-table").exit_code == 0


def test_all_tables_by_name(canal: Path) -> None:
    names = ["other.o", "shop.later", "shop.later2", "shop.nopk", "shop.pair", "shop.sentinel",
             "shop.tmp_drop", "shop.uk", "shop.wide", "shop.`订 单`"]  # fmt: skip
    for shape in ("spark", "create-table"):
        text = run("schema", canal, "--as", shape).stdout
        blocks = [block.partition("\n") for block in text.removeprefix("-- ").split("\n\n-- ")]
        assert [head for head, _, _ in blocks] == names
        for head, _, body in blocks:
            alone = run("schema", canal, "--table", head, "--as", shape).stdout
            assert body.rstrip("\n") == alone.rstrip("\n")
    lines = run_lines("schema", canal, "--as", "json")
    assert [line["table"] for line in lines] == [name.replace("`", "") for name in names]
    assert lines[4] == run_json("schema", canal, "--table", "shop.pair", "--as", "json")
    only = run("schema", canal, "--as", "spark", "--include-tables", "*.o").stdout
    assert only == "-- other.o\nid INT\n"
    once = run("schema", "-", "--as", "spark", stdin=canal.read_bytes())
    assert (once.exit_code, "can be read only once" in once.stderr) == (2, True)


def test_all_tables_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = (golden.message for golden in load_variant("canal-json", "default").messages)
    path = write_messages(tmp_path / "canal.jsonl", messages)
    reads = []

    def count(name: str) -> None:
        read = getattr(Reader, name)

        def counted(self: Reader, what: str = "reading") -> Iterator[Any]:
            reads.append(what)
            return read(self, what)

        monkeypatch.setattr(Reader, name, counted)

    count("messages")
    count("blocks")
    few = ("--as", "spark", "-o", "inferSampleMessages=1")
    text = run("schema", path, *few).stdout
    assert sorted(reads) == ["looking for table schemas", "reading"]
    for table in ("golden.all_types", "ddl_db.t1", "golden.gen_cols", "golden.zero_dates"):
        alone = run("schema", path, "--table", table, *few).stdout
        assert f"-- {table}\n{alone.rstrip()}\n\n--" in text


def test_undecodable_messages_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("no message\n" * 3)
    result = run("schema", path)
    assert "3 corrupt: cdcfmt validate lists them" in result.stderr
