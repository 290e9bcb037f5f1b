"""Sinks for messages in plain Python, without an engine.

Files: :class:`FileSink`.  fsspec and zstandard are installed by
``pip install 'cdcfmt-core[files]'`` and imported on use.
"""

from cdcfmt_core.io.sinks.files import FileSink, TaskFiles
from cdcfmt_core.io.sinks.lines import line_writer
from cdcfmt_core.io.sinks.merging import CommitId

__all__ = [
    "CommitId",
    "FileSink",
    "TaskFiles",
    "line_writer",
]
