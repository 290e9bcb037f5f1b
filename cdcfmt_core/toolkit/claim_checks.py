"""The folder of claim checks: messages that were too large for their topic."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.filesystem import is_local, open_filesystem
from cdcfmt_core.toolkit.large_message_output import ClaimCheckWriter
from cdcfmt_core.toolkit.large_messages import ClaimCheckStore

# Some stores decode these, and the name would refer to another file.
_UNSAFE_IN_URLS = re.compile(r"[%?#]")


def open_claim_check_store(
    uri: str, storage_options: Mapping[str, Any] | None = None
) -> ClaimCheckStore:
    """The store in the folder ``uri``: a local path, or a URL that fsspec can open.

    It reads only files directly in that folder; in a local folder it also rejects links to files
    outside.  It can be pickled.

    :raises MissingDependencyError: if a library is missing; the text names it.
    :raises SourceError: if the URL's scheme is unknown.
    """
    # A bad URI fails here, not at the first claim check.
    open_filesystem(uri, storage_options)
    return ClaimCheckStore(uri, _FolderReader(uri, dict(storage_options or {})))


@attrs.frozen
class _FolderReader:
    uri: str
    storage_options: dict[str, Any] = attrs.field(repr=False)

    def __call__(self, name: str, limit: int) -> bytes:
        if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise DecodeError("claim check location is not a file name", sample=name)
        filesystem, root = open_filesystem(self.uri, self.storage_options)
        if is_local(filesystem):
            path = self._local_path(root, name)
        elif _UNSAFE_IN_URLS.search(name):
            raise DecodeError("claim check location is not a file name", sample=name)
        else:
            path = f"{root.rstrip('/')}/{name}"
        with filesystem.open(path, "rb") as file:
            body: bytes = file.read(limit + 1)
        if len(body) > limit:
            raise DecodeError(
                f"claim check {name} under {self.uri} is larger than {limit} bytes; "
                "raise maxMessageBytes if it is real"
            )
        return body

    def _local_path(self, root: str, name: str) -> str:
        folder = os.path.realpath(root)
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.dirname(path) != folder:
            raise DecodeError(
                f"claim check {name} is a link to a file outside of {self.uri}; "
                "put the file itself there"
            )
        # Opening a pipe or the like could block forever.
        if os.path.exists(path) and not os.path.isfile(path):
            raise DecodeError(f"claim check {name} under {self.uri} is not a file")
        return path


def open_claim_check_writer(
    uri: str, storage_options: Mapping[str, Any] | None = None, *, raw_value: bool = False
) -> ClaimCheckWriter:
    """The writer to the folder ``uri``, which :func:`open_claim_check_store` reads.

    A missing local folder is created.  The writer can be pickled.

    :raises MissingDependencyError: if a library is missing; the text names it.
    :raises SourceError: if the URL's scheme is unknown.
    """
    open_filesystem(uri, storage_options)
    return ClaimCheckWriter(uri, _FolderWriter(uri, dict(storage_options or {})), raw_value)


@attrs.frozen
class _FolderWriter:
    uri: str
    storage_options: dict[str, Any] = attrs.field(repr=False)

    def __call__(self, name: str, body: bytes) -> None:
        filesystem, root = open_filesystem(self.uri, self.storage_options)
        path = f"{root.rstrip('/')}/{name}"
        if not is_local(filesystem):
            # Object stores show a file only when it is complete.
            with filesystem.open(path, "wb") as file:
                file.write(body)
            return
        os.makedirs(root, exist_ok=True)
        aside = f"{root.rstrip('/')}/.{name}.part"
        try:
            with open(aside, "xb") as file:
                file.write(body)
            os.replace(aside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise
