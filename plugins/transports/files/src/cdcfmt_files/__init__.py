"""Files as source and sink of messages, and the drain of queues into files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cdcfmt_core import TransportSpec, hookimpl
from cdcfmt_files.sources.options import LINE_OPTIONS, SOURCE_OPTIONS
from cdcfmt_toolkit.topics.options import INCLUDE_HEADERS

FILES: Final = TransportSpec(
    name="files",
    title="Files",
    summary="JSON lines in folders, globs and object stores, opened by fsspec",
    abilities=frozenset({"keys", "headers", "ordering"}),
    options=(*SOURCE_OPTIONS, *LINE_OPTIONS, INCLUDE_HEADERS),
    chosen_by=("path", "paths"),
    open_input="cdcfmt_files.sources.input:open_input",
    api_version=1,
)
"""The transport that engines use without options of another one."""


@hookimpl
def cdcfmt_register_transports() -> Iterable[TransportSpec]:
    return [FILES]
