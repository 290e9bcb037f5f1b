"""Where messages go, in plain Python and without an engine.

Files: :class:`FileSink`.  fsspec and zstandard come with
``pip install 'cdcfmt-core[files]'`` and are imported on use.
"""

from cdcfmt_core.sinks.files import CommitId, FileSink, TaskFiles
from cdcfmt_core.sinks.lines import line_writer

__all__ = ["CommitId", "FileSink", "TaskFiles", "line_writer"]
