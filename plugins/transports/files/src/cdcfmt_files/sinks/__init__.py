"""Sinks for messages in plain Python, without an engine.

Files: :class:`FileSink`.  fsspec and zstandard are installed by
this package and imported on use.
"""

from cdcfmt_files.sinks.files import FileSink, TaskFiles
from cdcfmt_files.sinks.lines import line_writer
from cdcfmt_files.sinks.merging import CommitId

__all__ = [
    "CommitId",
    "FileSink",
    "TaskFiles",
    "line_writer",
]
