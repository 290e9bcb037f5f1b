"""Names that people type, and what the error says."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_tools import run, run_json, write_messages
from support.golden_data import native_messages


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guesses") / "canal.jsonl"
    return write_messages(path, [*native_messages("canal/canal_flat")][:30])


GUESSES = {
    "--timezone": "did you mean --source-time-zone?",
    "--source-timezone": "did you mean --source-time-zone?",
    "--include-table": "did you mean --include-tables?",
    "--database": "--include-tables 'shop.*' selects the tables of a database",
    "--topic": "topics are an INPUT: kafka://host:9092/topic",
    "--bootstrap-server": "topics are an INPUT: kafka://host:9092/topic",
    "--from-beginning": "-o startingOffsets=earliest",
    "--startingOffsets": "write -o startingOffsets=VALUE",
    "--largeMessageHandleCompression": "write -o largeMessageHandleCompression=VALUE",
    "--where": "cat has it",
    "--key-columns": "cat has it",
    "--pk": "cat --key-columns names the key columns",
    "--schema-registry-url": "write -o schema.registry.url=VALUE",
    "--schemaRegistryUrl": "write -o schema.registry.url=VALUE",
    "--registry": "schema.registry.url is the address of the schema registry",
    "--basic.auth.user.info": "begin with schema.registry., as in schema.registry.url",
    "--nth": "inspect has it",
    "--from": "--starting-source-time and --ending-source-time select",
    "--filter": "cat --where selects rows",
    "--header": "messages are lines of JSON, or binary, and not CSV",
    "--readChangeFeed": "the input holds changes",
    "--modifiedAfter": "--starting-source-time and --ending-source-time select",
    "--multiLine": "--line-sep sets another separator",
    "--schemaStore": "has no meaning in this command",
    "--security.protocol": "settings of Kafka's client begin with kafka.",
}
PAIRS = {
    "timezone": "did you mean --source-time-zone?",
    "bootstrap.servers": "begin with kafka., as in kafka.bootstrap.servers",
    "schemaRegistryUrl": "schema.registry.url is the address of the schema registry",
    "basic.auth.user.info": "begin with schema.registry., as in schema.registry.url",
    "primaryKey": "--key-columns names the key columns",
    "sasl.mechanism": "begin with kafka., as in kafka.bootstrap.servers",
    "header": "and not CSV",
    "readChangeFeed": "no option 'readChangeFeed': the input holds changes",
    "modifiedAfter": "select events by --starting-source-time and --ending-source-time",
    "subscribe": "option subscribe is for topics, such as kafka://host:port/topic",
    "mode": "option mode has no meaning in this command",
    "wholeText": "--line-sep sets another separator",
}


@pytest.mark.parametrize("flag", GUESSES)
def test_flags(flag: str, canal: Path) -> None:
    result = run("stats", canal, flag, "x")
    assert result.exit_code == 2
    assert GUESSES[flag] in result.stderr
    assert "No such option: --" in result.stderr


@pytest.mark.parametrize("name", PAIRS)
def test_names_of_pairs(name: str, canal: Path) -> None:
    result = run("stats", canal, "-o", f"{name}=x")
    assert (result.exit_code, PAIRS[name] in result.stderr) == (2, True), result.stderr


COMMANDS = {
    "grep": "cat --where",
    "lag": "stats",
    "dlq": "validate",
    "read": "cat",
    "replay": "python -m pyspark_cdcfmt.sync --replay",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_names_of_commands(name: str) -> None:
    result = run(name, "orders.jsonl")
    assert result.exit_code == 2
    assert f"No such command {name!r}; did you mean {COMMANDS[name]}?" in result.stderr


@pytest.mark.parametrize("path", ["kafka:localhost:9092/t", "broker-1.x:9092,b:9092/t"])
def test_addresses_without_their_transport(path: str) -> None:
    result = run("cat", path)
    assert (result.exit_code, "kafka://host:9092/topic" in result.stderr) == (2, True)


def test_since_and_until_in_every_command(canal: Path) -> None:
    given = "--since", "2026-11-20T22:38:40", "--until", "2026-11-20T22:39"
    spelled = "--starting-source-time", given[1], "--ending-source-time", given[3]
    for command in (("sniff",), ("convert", "--to", "canal-json"), ("validate",)):
        found = run(*command, canal, *given)
        assert (found.exit_code, found.stdout) == (0, run(*command, canal, *spelled).stdout)
    every = run_json("stats", canal, "--json")["events"]
    assert run_json("stats", canal, "--json", *given)["events"] < every


def test_every_spelling_of_a_flag(canal: Path) -> None:
    expected = run("stats", canal, "--include-tables", "shop.pair").stdout
    assert "shop.pair" in expected
    for flag in ("--includeTables", "--include_tables", "--INCLUDE-TABLES"):
        assert run("stats", canal, flag, "shop.pair").stdout == expected
    twice = run("stats", canal, "-o", "lineSep=a", "-o", "line-sep=b")
    assert (twice.exit_code, "are the same: give only one" in twice.stderr) == (2, True)


def test_format_is_protocol(canal: Path) -> None:
    good = run("stats", canal, "--format", "canal-json")
    assert (good.exit_code, good.stdout) == (0, run("stats", canal).stdout)
    assert "unknown format 'nix'" in run("validate", canal, "--format", "nix").stderr
    # cat and convert have other formats, too.
    other = run("cat", canal, "--format", "canal-json")
    assert (other.exit_code, "--protocol canal-json names the format" in other.stderr) == (2, True)
    both = run("convert", canal, "--format", "canal-json")
    assert (both.exit_code, "--from names the format to read" in both.stderr) == (2, True)


def test_a_table_without_its_database(canal: Path) -> None:
    result = run("cat", canal, "--table", "pair")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no table pair in the input; did you mean shop.pair?")
    pattern = run("cat", canal, "--include-tables", "pair")
    assert (pattern.exit_code, "*.table is one of any database" in pattern.stderr) == (2, True)
