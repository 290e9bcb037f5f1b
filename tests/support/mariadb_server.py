"""A real MariaDB for the tests: Debian's packages, with a row-based binlog."""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as Xml
from collections.abc import Sequence
from pathlib import Path

import attrs

from support.brokers import BrokerNotStartedError, end_process, free_ports, wait_for_start
from support.debian_packages import libraries_of, unpacked

USER, PASSWORD = "reader", "s3cr3t-word"
"""An account with all rights, over TCP."""

_PACKAGES = ("mariadb-server-core", "mariadb-client-core")

_BOOTSTRAP = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
_SETTINGS = """
[mariadbd]
basedir={root}/usr
lc-messages-dir={root}/usr/share/mysql
character-sets-dir={root}/usr/share/mysql/charsets
datadir={folder}/data
tmpdir={folder}
socket={folder}/socket
pid-file={folder}/pid
bind-address=127.0.0.1
port={port}
server-id=1
log-bin={folder}/binlog
binlog-format=ROW
binlog-row-image=FULL
binlog-row-metadata=FULL
sync-binlog=0
innodb-flush-log-at-trx-commit=0
innodb-log-file-size=16M
innodb-buffer-pool-size=32M
performance-schema=OFF
skip-name-resolve
character-set-server=utf8mb4
default-time-zone=+00:00
plugin-maturity=unknown
"""


class SqlError(Exception):
    """The server refused a statement; the text is the client's."""


@attrs.define
class MariaDb:
    """A server in a folder of its own."""

    folder: Path
    port: int = attrs.field(factory=lambda: free_ports(1)[0])
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; the first time with empty databases."""
        root = unpacked("mariadb", (*_PACKAGES, *libraries_of(*_PACKAGES)))
        log = self.folder / "server.log"
        settings = self.folder / "my.cnf"
        if not settings.exists():
            settings.write_text(
                _SETTINGS.format(root=root, folder=self.folder, port=self.port)
                # A server does not run as root by chance.
                + ("user=root\n" if os.geteuid() == 0 else "")
            )
            self._create(root)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self._server(root), stdout=output, stderr=output, env=_environment(root)
            )
        wait_for_start(self._answers, self._process, [log])

    def _server(self, root: Path) -> list[str]:
        return [f"{root}/usr/sbin/mariadbd", f"--defaults-file={self.folder}/my.cnf"]

    def _create(self, root: Path) -> None:
        (self.folder / "data").mkdir()
        scripts = (Path(root, "usr/share/mysql", name).read_text() for name in _BOOTSTRAP)
        account = f"'{USER}'@'%' IDENTIFIED BY '{PASSWORD}'"
        text = "\n".join(
            [
                "CREATE DATABASE mysql;",
                "USE mysql;",
                *scripts,
                "FLUSH PRIVILEGES;",
                f"CREATE USER {account};",
                f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;",
            ]
        )
        done = _run(root, [*self._server(root), "--bootstrap", "--skip-log-bin"], text)
        if done.returncode:
            raise BrokerNotStartedError(f"MariaDB has no system tables: {done.stderr[-3000:]}")

    def _answers(self) -> bool:
        try:
            self.execute("DO 1")
        except SqlError:
            return False
        return True

    def stop(self) -> None:
        end_process(self._process)
        self._process = None

    def execute(self, *statements: str) -> list[dict[str, str | None]]:
        """Run statements in one session, in which settings stay from one to the next.

        :returns: the rows of the last one that has rows, as the server prints them.
        :raises SqlError: at the first statement that fails; those before it stay.
        """
        root = unpacked("mariadb", _PACKAGES)
        login = [f"--user={USER}", f"--password={PASSWORD}", "--protocol=TCP"]
        command = [
            f"{root}/usr/bin/mariadb",
            "--no-defaults",
            f"--character-sets-dir={root}/usr/share/mysql/charsets",
            "--default-character-set=utf8mb4",
            *("--host=127.0.0.1", f"--port={self.port}", *login),
            "--xml",
        ]
        done = _run(root, command, ";\n".join(statements) + ";\n")
        if done.returncode:
            raise SqlError(done.stderr.strip())
        return _rows(done.stdout)


def _run(root: Path, command: list[str], statements: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        input=statements,
        capture_output=True,
        text=True,
        env=_environment(root),
        timeout=120,
        check=False,
    )


_NULL = "{http://www.w3.org/2001/XMLSchema-instance}nil"


def _rows(output: str) -> list[dict[str, str | None]]:
    """The last result of the client's XML, which is one document for each."""
    at = output.rfind("<?xml")
    if at < 0:
        return []
    rows: Sequence[Xml.Element] = Xml.fromstring(output[at:]).findall("row")
    return [
        {
            field.attrib["name"]: None if _NULL in field.attrib else field.text or ""
            for field in row.findall("field")
        }
        for row in rows
    ]


def _environment(root: Path) -> dict[str, str]:
    folders = ":".join(str(path) for path in root.glob("*/*-linux-gnu*"))
    more = ":".join(str(path) for path in root.glob("usr/lib/*-linux-gnu*"))
    return {**os.environ, "LD_LIBRARY_PATH": f"{folders}:{more}"}
