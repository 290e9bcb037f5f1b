"""The command line under test: in this process, or in one of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from cdcfmt_cli.app import app
from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line

WIDE = {"COLUMNS": "200"}


def run(*arguments: object, stdin: bytes | None = None, width: int = 200) -> Result:
    """The command in this process; ``stdout`` and ``stderr`` are apart."""
    runner = CliRunner(env={"COLUMNS": str(width)})
    result = runner.invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_json(*arguments: object, exit_code: int = 0) -> Any:
    """The JSON that the command prints."""
    result = run(*arguments)
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def run_lines(*arguments: object, stdin: bytes | None = None) -> list[Any]:
    """The JSON Lines that the command prints."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    # Not splitlines(), which also splits at characters that JSON's texts may hold.
    return [json.loads(line) for line in result.stdout.split("\n")[:-1]]


def start(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """The installed command as a process of its own."""
    environment = os.environ | WIDE
    # Whether output comes in time shall not hang on it.
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("cdcfmt")), *map(str, arguments)],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        # A run in the background ignores Ctrl-C, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def write_messages(path: Path, messages: Iterable[Message]) -> Path:
    """A file of whole messages, one a line."""
    path.write_bytes(b"".join(wrap_line(message) + b"\n" for message in messages))
    return path
