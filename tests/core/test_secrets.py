"""Passwords and query strings of URLs are in no error, log or note."""

from __future__ import annotations

import logging

import pytest
from support.cli_tools import run

from cdcfmt_cli.inputs import public
from cdcfmt_core.errors import DecodeError, SourceError
from cdcfmt_core.texts import open_logger, without_secrets
from cdcfmt_toolkit.large_messages import ClaimCheckStore

SECRET = "hunter2"
PATHS = [
    f"kafak://h:1/orders?kafka.sasl.password={SECRET}",
    f"kafak://me:{SECRET}@h:1/orders",
    f"kafka:/h:1/orders?startingOffsets=earliest&kafka.sasl.password={SECRET}",
    f"kafka//h:1/orders?kafka.sasl.password={SECRET}",
    f"/no/such/folder?sig={SECRET}",
    f"sftpp://me:{SECRET}@h/x?a=b",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("command", ["cat", "validate", "stats", "sniff", "inspect"])
def test_a_mistyped_address(path: str, command: str) -> None:
    result = run(command, path)
    assert result.exit_code in (2, 3)
    assert SECRET not in result.output


@pytest.mark.parametrize("path", PATHS)
def test_errors_and_logs(path: str, caplog: pytest.LogCaptureFixture) -> None:
    assert SECRET not in str(SourceError(f"path {path}: no such file"))
    assert SECRET not in str(DecodeError("bad").at(path=path, offset=3))
    with caplog.at_level(logging.WARNING):
        open_logger("cdcfmt_core").warning("%s is not there", path)
    assert SECRET not in caplog.text
    assert SECRET not in " ".join(public([path]))


def test_other_text_is_unchanged() -> None:
    for text in (
        "abfss://container@account.dfs.core.windows.net/a/part-?.jsonl",
        "s3://bucket/a?.jsonl",
        "kafka://a:9092,b:9092/orders",
        "what is it? a=b",
        "s3a://b/x=1/y=2",
    ):
        assert without_secrets(text) == text
    assert without_secrets("ftp://u:p@h/a") == "ftp://u:…@h/a"


def test_the_store_of_claim_checks() -> None:
    assert SECRET not in repr(ClaimCheckStore(f"memory://x?key={SECRET}"))
