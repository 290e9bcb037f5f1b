"""Jars from Maven Central, through the Ivy that PySpark ships, once, into the user's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import ssl
import subprocess
import tempfile
import warnings
from pathlib import Path

from pyspark_cdcfmt.local import environment

_CLASSIFIED = """
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tests" module="tests"/>
  <dependencies>
    <dependency org="{0}" name="{1}" rev="{2}" transitive="false">
      <artifact name="{1}" type="{4}" ext="{4}" m:classifier="{3}"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


class UnavailableError(Exception):
    """There is no Java or no Maven Central here."""


def cache_folder() -> Path:
    """Where downloads of the tests are kept from run to run."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cdcfmt-tests"


def java_program() -> str:
    home = environment().get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if program is None:
        raise UnavailableError("there is no Java")
    return program


def resolve(
    group: str,
    artifact: str,
    version: str,
    *,
    transitive: bool = True,
    classifier: str = "",
    extension: str = "jar",
) -> Path:
    """The folder with the jars of an artifact, from the cache or Maven Central.

    With a ``classifier`` that one file alone, a jar or one with another ``extension``.
    """
    folder = cache_folder() / "-".join(filter(None, [artifact, version, classifier]))
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{folder}.lock").open("w") as lock:
        # One download of all runs and threads.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _download(folder, (group, artifact, version), transitive, (classifier, extension))
    return folder


def _download(
    folder: Path, names: tuple[str, str, str], transitive: bool, classified: tuple[str, str]
) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        if classified[0]:
            # The command line has no word for it.
            module = Path(temporary, "ivy.xml")
            module.write_text(_CLASSIFIED.format(*names, *classified))
            wanted = ["-ivy", str(module)]
        else:
            wanted = ["-dependency", *names, "-types", "jar", "bundle"]
            if not transitive:
                wanted.append("-notransitive")
        jars = Path(temporary, "jars")
        done = _ivy(Path(temporary), jars, wanted)
        if done.returncode and "SSLHandshakeException" in done.stdout:
            # A proxy's certificate stands where the system keeps those that it trusts, and
            # the wheel's Java has its own.
            trusted = Path(temporary, "trusted.p12")
            write_trust_store(trusted)
            done = _ivy(Path(temporary), jars, wanted, f"-Djavax.net.ssl.trustStore={trusted}")
        if done.returncode or not jars.is_dir():
            raise UnavailableError(f"{':'.join(names)} cannot be resolved: {done.stdout[-500:]}")
        jars.rename(folder)


def _ivy(
    folder: Path, jars: Path, wanted: list[str], *java_options: str
) -> subprocess.CompletedProcess[str]:
    import pyspark

    (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    java = [java_program(), *java_options, "-cp", str(ivy), "org.apache.ivy.Main"]
    files = f"{jars}/[artifact]-[revision](-[classifier]).[ext]"
    return subprocess.run(
        [*java, *wanted, "-retrieve", files, "-cache", str(folder / "ivy")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


def write_trust_store(path: Path) -> None:
    """What this Python trusts, as Java reads it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

    certificates = []
    with warnings.catch_warnings():
        # Old roots have numbers that are not allowed any more.
        warnings.simplefilter("ignore")
        for number, data in enumerate(_trusted()):
            certificate = x509.load_der_x509_certificate(data)
            certificates.append(pkcs12.PKCS12Certificate(certificate, b"%d" % number))
    path.write_bytes(pkcs12.serialize_java_truststore(certificates, NoEncryption()))


def _trusted() -> list[bytes]:
    context = ssl.create_default_context()
    folder = ssl.get_default_verify_paths().capath
    # OpenSSL looks into the folder only for the certificate that it needs.
    for file in Path(folder).glob("*.0") if folder else ():
        context.load_verify_locations(file)
    return context.get_ca_certs(binary_form=True)
