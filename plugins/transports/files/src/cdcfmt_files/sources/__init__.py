"""Sources of messages in plain Python, without an engine.

Files: :func:`list_files` lists them, :func:`plan_partitions` divides them into splits,
:func:`read_split` reads a split as messages (:func:`read_lines` keeps blocks of lines unsplit),
and :class:`FileOffset` is the position of a stream of files.  A path is anything that fsspec can
open; fsspec and zstandard are installed by this package and imported on
use.  Topics are in separate packages (:mod:`cdcfmt_core.transport`).
"""

from cdcfmt_files.sources.ends import read_ends, spread
from cdcfmt_files.sources.file_offset import FileOffset
from cdcfmt_files.sources.files import FileInfo, list_files
from cdcfmt_files.sources.lines import LineFormat, Lines, one_by_one, parse_line
from cdcfmt_files.sources.reader import ReadParameters, read_lines, read_split
from cdcfmt_files.sources.splits import FileSplit, plan_partitions
from cdcfmt_files.sources.whole_messages import wrap_line
from cdcfmt_toolkit.inputs import BadLine

__all__ = [
    "BadLine",
    "FileInfo",
    "FileOffset",
    "FileSplit",
    "LineFormat",
    "Lines",
    "ReadParameters",
    "list_files",
    "one_by_one",
    "parse_line",
    "plan_partitions",
    "read_ends",
    "read_lines",
    "read_split",
    "spread",
    "wrap_line",
]
