"""A user pipes ``cdcfmt cat`` into jq or a browser and compares keys and decimals.

Both read numbers as doubles: 18446744073709551615 became 18446744073709552000, and
9007199254740993 its neighbour's key, without a word.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.cli_tools import run, run_json, run_lines, write_messages
from support.golden_data import load_variant

NODE = "for (const line of require('fs').readFileSync(0, 'utf8').split('\\n'))" + (
    "if (line) console.log(JSON.stringify(JSON.parse(line)))"
)


def lines(text: str) -> list[str]:
    # Not splitlines(), which also splits at characters that JSON's texts may hold.
    return text.split("\n")[:-1]


def by_program(*command: str) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        if shutil.which(command[0]) is None:
            pytest.skip(f"there is no {command[0]} here")
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return lines(done.stdout)

    return read


def by_doubles(text: str) -> list[str]:
    return [json.dumps(json.loads(line, parse_int=float)) for line in lines(text)]


READERS = {
    "doubles": by_doubles,
    "node": by_program("node", "-e", NODE),
    "jq": by_program("jq", "-c", "."),
}


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = (golden.message for golden in load_variant("canal-json", "tidb-extension").messages)
    return write_messages(tmp_path_factory.mktemp("canal") / "canal.jsonl", messages)


def exact(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("options", [[], ["--table", "golden.all_types"]])
def test_numbers_beyond_doubles_are_text(reader: str, options: list[str], canal: Path) -> None:
    text = run("cat", canal, *options).stdout
    assert [exact(line) for line in READERS[reader](text)] == list(map(exact, lines(text)))


def test_other_values_are_unchanged(canal: Path) -> None:
    texts = 0

    def compare(safe: Any, number: Any) -> None:
        nonlocal texts
        if isinstance(number, Decimal) and isinstance(safe, str):
            texts += 1
            assert Decimal(safe) == number
            assert Decimal(repr(float(number))) != number or abs(number) > 2**53 - 1
        elif isinstance(number, dict) and isinstance(safe, str):
            compare(exact(safe), number)  # a JSON column
        elif isinstance(number, dict):
            assert safe.keys() == number.keys()
            for name, value in number.items():
                compare(safe[name], value)
        elif isinstance(number, list):
            for pair in zip(safe, number, strict=True):
                compare(*pair)
        else:
            assert safe == number

    safe, numbers = (
        lines(run("cat", canal, *options).stdout) for options in ([], ["--numbers", "exact"])
    )
    for pair in zip(safe, numbers, strict=True):
        compare(*map(exact, pair))
    assert texts > 400
    insert = next(line for line in numbers if '"op":"insert"' in line)
    assert '"c_bigint_u":18446744073709551615,' in insert


def test_other_commands(canal: Path) -> None:
    first = run_lines("inspect", canal, "--json", "--nth", 3)[0]["events"][0]
    assert first["after"]["c_bigint_u"] == "18446744073709551615"
    numbers = run_lines("inspect", canal, "--json", "--nth", 3, "--numbers", "exact")
    assert numbers[0]["events"][0]["after"]["c_bigint_u"] == 2**64 - 1
    assert type(run_json("stats", canal, "--json")["watermark"]["commit_ts"]) is str
