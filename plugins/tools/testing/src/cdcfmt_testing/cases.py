"""Golden cases: messages of a real producer, and their events.

A case is a folder:

- ``messages.jsonl``: one message per line, as JSON with ``key`` and ``value`` in base64
  (:mod:`cdcfmt_files.sources.lines`), or only the value if it is JSON
- ``events.json``: the events of each message (:mod:`cdcfmt_testing.event_json`)
- ``options.json``: the options needed to read them; optional
- ``writing.json``: the options needed to write the same messages; optional.  ``null``: the format
  cannot write them
- ``origin.txt``: which producer wrote the messages, and how
- ``claims/``: the files of claim-check messages, if any
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from cdcfmt_core.events import Event, Message
from cdcfmt_files.sources import BadLine, LineFormat, parse_line
from cdcfmt_files.sources.whole_messages import begins_message
from cdcfmt_testing.event_json import events_from_json

_FILES = {"messages.jsonl", "events.json", "options.json", "writing.json", "origin.txt", "claims"}


@attrs.frozen
class Case:
    """Messages in the order in which one reader gets them, and their events.

    - ``events``: the events of each message; None if other tests check them.
    - ``options``: reading options as users spell them, the format's own and common ones.
    - ``writing``: options to write the same messages again; None if that is impossible, as for
      messages batched or compressed by another library.
    """

    name: str
    messages: tuple[Message, ...] = attrs.field(repr=False)
    events: tuple[tuple[Event, ...], ...] | None = attrs.field(default=None, repr=False)
    options: Mapping[str, str] = attrs.field(factory=dict)
    writing: Mapping[str, Any] | None = attrs.field(factory=dict)


def load_cases(folder: Path) -> list[Case]:
    """The cases in the folders below ``folder``, sorted by name.

    :raises ValueError: for an incomplete case; the text says what is missing.
    """
    cases = [load_case(path) for path in sorted(Path(folder).iterdir()) if path.is_dir()]
    if not cases:
        raise ValueError(f"{folder} has no cases: create a subfolder with a messages.jsonl")
    for case in cases:
        if case.events is None:
            raise ValueError(
                f"case {case.name} has no events.json: write it with python -m "
                f"cdcfmt_testing FORMAT {Path(folder) / case.name}"
            )
    return cases


def load_case(folder: Path) -> Case:
    """The case of one folder.

    :raises ValueError: if it is incomplete; the text says what is missing.
    """
    unknown = {path.name for path in folder.iterdir()} - _FILES
    if unknown:
        raise ValueError(f"case {folder.name} has {min(unknown)!r}, which is not a case file")
    for name in ("messages.jsonl", "origin.txt"):
        if not (folder / name).is_file():
            raise ValueError(f"case {folder.name} has no {name}")
    messages = read_messages(folder / "messages.jsonl")
    if not messages:
        raise ValueError(f"case {folder.name} has no messages: its messages.jsonl is empty")
    events: list[list[Event]] | None = None
    if (folder / "events.json").is_file():
        try:
            events = events_from_json((folder / "events.json").read_bytes())
        except ValueError as error:
            raise ValueError(f"case {folder.name}, events.json: {error}") from error
        if len(events) != len(messages):
            raise ValueError(
                f"case {folder.name} has {len(messages)} messages but events for {len(events)}"
            )
    return Case(
        folder.name,
        tuple(messages),
        None if events is None else tuple(map(tuple, events)),
        _read_options(folder),
        _read_json(folder / "writing.json"),
    )


def read_messages(path: Path) -> list[Message]:
    """The messages of a file; each line is a whole message as a JSON object, or only its value.

    :raises ValueError: for a line that starts like a whole message but is not one.
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
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"case {path.parent.name}, {path.name}: {error}") from error
    if type(found) is dict or (found is None and path.name == "writing.json"):
        return found
    raise ValueError(f"case {path.parent.name}, {path.name}: not an object of option → value")
