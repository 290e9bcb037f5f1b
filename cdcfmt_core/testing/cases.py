"""Golden cases: messages of a real producer, and the events that they are.

A case is a folder:

- ``messages.jsonl``: a message a line, as JSON with ``key`` and ``value`` in base64
  (:mod:`cdcfmt_core.io.sources.lines`), or the bare value where it is JSON
- ``events.json``: the events of each message (:mod:`cdcfmt_core.testing.event_json`)
- ``options.json``: what a user has to set to read them; left out where that is nothing
- ``writing.json``: what a user has to set to write them so; left out where that is nothing
- ``origin.txt``: which producer wrote the messages, and how
- ``claims/``: the files of claim-check messages, if there are any
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from cdcfmt_core.events import Event, Message
from cdcfmt_core.io.sources.lines import BadLine, LineFormat, parse_line
from cdcfmt_core.io.sources.whole_messages import begins_message
from cdcfmt_core.testing.event_json import events_from_json

_FILES = {"messages.jsonl", "events.json", "options.json", "writing.json", "origin.txt", "claims"}


@attrs.frozen
class Case:
    """Messages in the order in which one reader gets them, and their events.

    ``events`` are those of each message; None where other tests hold them against the truth.
    ``options`` are spelt as users spell them, the format's own and everyone's, and so are
    ``writing``, for writing the messages again as they are; None where that is impossible, as with
    messages that were batched or compressed by another library.
    """

    name: str
    messages: tuple[Message, ...] = attrs.field(repr=False)
    events: tuple[tuple[Event, ...], ...] | None = attrs.field(default=None, repr=False)
    options: Mapping[str, str] = attrs.field(factory=dict)
    writing: Mapping[str, Any] | None = attrs.field(factory=dict)


def load_cases(folder: Path) -> list[Case]:
    """The cases in the folders below ``folder``, sorted by name.

    :raises ValueError: for a case that is not whole; the text says what is missing.
    """
    cases = [load_case(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    if not cases:
        raise ValueError(f"{folder} holds no cases: make a folder with messages.jsonl in it")
    return cases


def load_case(folder: Path) -> Case:
    """The case of one folder.

    :raises ValueError: if it is not whole; the text says what is missing.
    """
    unknown = {path.name for path in folder.iterdir()} - _FILES
    if unknown:
        raise ValueError(f"case {folder.name} has {min(unknown)!r}, which is no file of a case")
    for name in ("messages.jsonl", "origin.txt"):
        if not (folder / name).is_file():
            raise ValueError(f"case {folder.name} has no {name}")
    messages = read_messages(folder / "messages.jsonl")
    events: list[list[Event]] | None = None
    if (folder / "events.json").is_file():
        events = events_from_json((folder / "events.json").read_bytes())
        if len(events) != len(messages):
            raise ValueError(
                f"case {folder.name} has {len(messages)} messages and the events of {len(events)}"
            )
    return Case(
        folder.name,
        tuple(messages),
        None if events is None else tuple(map(tuple, events)),
        _read_options(folder),
        _read_json(folder / "writing.json"),
    )


def read_messages(path: Path) -> list[Message]:
    """The messages of a file with a JSON object of a whole message a line, or a bare value.

    :raises ValueError: for a line that begins like a whole message and is none.
    """
    messages: list[Message] = []
    for number, line in enumerate(path.read_bytes().splitlines()):
        line_format: LineFormat = "message" if begins_message(line) else "value"
        message = parse_line(line, offset=number, line_format=line_format)
        if isinstance(message, BadLine):
            raise ValueError(f"{path}, line {number + 1}: {message.error.summary}")
        messages.append(message)
    return messages


def _read_options(folder: Path) -> dict[str, str]:
    options: dict[str, str] = _read_json(folder / "options.json")
    if (folder / "claims").is_dir():
        options.setdefault("claimCheckStorageUri", str((folder / "claims").resolve()))
    return options


def _read_json(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.is_file() else {}
