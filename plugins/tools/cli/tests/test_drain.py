"""``cdcfmt drain``: errors before it connects; the plugins' tests have the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_tools import run

QUEUE = "rabbitmq://127.0.0.1:1/orders"


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("orders", "orders is not the address of a queue, such as rabbitmq://host/queue"),
        ("kafka://broker:9092/orders", "Kafka has no queues to drain; read it directly"),
    ],
)
def test_invalid_queue_addresses(tmp_path: Path, url: str, error: str) -> None:
    result = run("drain", url, "--into", tmp_path / "into")
    assert result.exit_code == 2
    assert error in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        ("--idle", "soon", "idle"),
        ("--roll-size", "0", "rollSize"),
        ("--roll-interval", "1x", "rollInterval"),
        ("--compression", "rar", "compression"),
        ("--storage-options", "[]", "storageOptions"),
        ("-o", "rollsize=0", "rollSize"),
    ],
)
def test_invalid_option_values(tmp_path: Path, option: str, value: str, name: str) -> None:
    result = run("drain", QUEUE, "--into", tmp_path / "into", option, value)
    assert result.exit_code == 2
    assert name in result.stderr or option in result.stderr
    assert not (tmp_path / "into").exists()
