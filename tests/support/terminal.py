"""A terminal for a command under test: a real pty, and what its screen shows in the end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path

_LONGEST = 120
_CONTROL = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])")


class Terminal:
    """The command's terminal, of this width.

    - ``written``: everything that the command wrote
    - ``exit_code``: known after :meth:`run`
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.written = ""
        self.exit_code: int | None = None

    def run(self, *arguments: object, interrupt: Callable[[str], bool] | None = None) -> str:
        """Run the command to its end.

        :param interrupt: takes what was written so far; Ctrl-C is pressed once it returns true.
        """
        leader, follower = pty.openpty()
        fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, self.width, 0, 0))
        # By default Ctrl-C drops what is written and not yet read here.
        modes = termios.tcgetattr(follower)
        modes[3] |= termios.NOFLSH
        termios.tcsetattr(follower, termios.TCSANOW, modes)
        environment = os.environ | {"TERM": "xterm-256color"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)

        def own_terminal() -> None:
            # A run in the background ignores Ctrl-C, and so would what it starts.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)

        with subprocess.Popen(
            [str(Path(sys.executable).with_name("cdcfmt")), *map(str, arguments)],
            stdout=follower,
            stderr=follower,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            preexec_fn=own_terminal,
        ) as process:
            os.close(follower)
            stop = threading.Timer(_LONGEST, process.kill)
            stop.start()
            written = b""
            while True:
                try:
                    piece = os.read(leader, 1 << 16)
                except OSError:  # Linux reports a closed terminal like this.
                    break
                if not piece:
                    break
                written += piece
                if interrupt is not None and interrupt(written.decode(errors="replace")):
                    interrupt = None
                    os.write(leader, b"\x03")
            self.exit_code = process.wait(60)
            stop.cancel()
        os.close(leader)
        self.written = written.decode()
        return self.written

    @property
    def lines(self) -> list[str]:
        """The lines of the screen in the end, without blanks at their ends."""
        screen: list[list[str]] = [[]]
        row = column = position = 0
        while position < len(self.written):
            control = _CONTROL.match(self.written, position)
            if control is not None:
                position = control.end()
                if control[2] == "A":
                    row = max(row - int(control[1] or 1), 0)
                elif control[2] == "K":
                    assert control[1] == "2"
                    screen[row] = []
                else:
                    assert control[2] in "mhl", control
                continue
            character = self.written[position]
            position += 1
            if character == "\r":
                column = 0
                continue
            if character != "\n":
                if column == self.width:
                    character, position, column = "\n", position - 1, 0
                else:
                    line = screen[row]
                    line += " " * (column + 1 - len(line))
                    line[column] = character
                    column += 1
                    continue
            row += 1
            if row == len(screen):
                screen.append([])
        return ["".join(line).rstrip() for line in screen]
