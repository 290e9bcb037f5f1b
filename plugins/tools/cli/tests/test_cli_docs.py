"""docs/cli.md: outputs of its examples are current, and complete."""

from __future__ import annotations

import re

from support.cli_tools import run
from support.doc_examples import DOC, filled_in

from cdcfmt_cli.app import COMMANDS
from cdcfmt_cli.commands.cat import OPTIONS as CAT_OPTIONS
from cdcfmt_cli.commands.schema import OPTIONS as SCHEMA_OPTIONS
from cdcfmt_cli.parameters import kebab
from cdcfmt_cli.settings import SECTIONS
from pyspark_cdcfmt.option_groups import bridge_options

TEXT = DOC.read_text(encoding="utf-8")


def test_outputs_of_examples_are_current() -> None:
    assert filled_in(TEXT) == TEXT, "run make tables"


def test_there_is_an_example_of_every_command() -> None:
    used = set(re.findall(r"^\$ cdcfmt (\w+)", TEXT, re.MULTILINE))
    # `new` has a page of its own, write-a-format.md; `drain` needs a broker.
    assert used | {"formats", "new", "drain"} == set(COMMANDS)
    assert all(f"| [`{command}`](#" in TEXT for command in COMMANDS)


def test_help_equals_the_option_tables() -> None:
    for command in ("cat", "stats", "sniff", "inspect", "validate", "schema"):
        text = " ".join(run(command, "--help", width=120).stdout.split())
        for table in SECTIONS.values():
            for option in table:
                assert f"--{kebab(option.name)}" in text
                assert " ".join(option.help.replace("`", "").split()[:6]) in text


def test_options_equal_those_of_spark() -> None:
    of_spark = {option.name: option for option in bridge_options()}
    own = [option for table in SECTIONS.values() for option in table]
    shared = [o for o in [*own, *CAT_OPTIONS, *SCHEMA_OPTIONS] if o.name not in ("kind", "op")]
    for option in shared:
        twin = of_spark[option.name]
        assert (option.type, option.choices, option.default, option.minimum) == (
            twin.type,
            twin.choices,
            twin.default,
            twin.minimum,
        )


def test_exit_codes_are_in_the_help() -> None:
    text = " ".join(run("--help").stdout.split())
    for words in ("130 interrupted (Ctrl-C)", "141 the reader of the output closed it"):
        assert words in text
