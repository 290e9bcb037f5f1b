"""Failures on disk, so that each can be repeated."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdcfmt_core.events import Message

FOLDER = Path(os.environ.get("SOAK_FINDINGS", Path(tempfile.gettempdir(), "soak-findings")))


def save(name: str, messages: Iterable[Message], about: Mapping[str, Any]) -> Path:
    """Write messages with all that it takes to decode them again; returns the file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    number = len(list(FOLDER.glob("*.json")))
    path = FOLDER / f"{name.replace('/', '-')}-{os.getpid()}-{number}.json"
    wires = [{"key": _text(m.key), "value": _text(m.value), "offset": m.offset} for m in messages]
    path.write_text(json.dumps({**about, "messages": wires}, indent=1), encoding="utf-8")
    return path


def load(path: Path) -> tuple[list[Message], dict[str, Any]]:
    """The messages of such a file, and its other fields."""
    about = json.loads(path.read_text(encoding="utf-8"))
    messages = [
        Message(_bytes(wire["key"]), _bytes(wire["value"]), offset=wire["offset"])
        for wire in about.pop("messages")
    ]
    return messages, about


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
