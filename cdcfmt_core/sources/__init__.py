"""Where messages come from, in plain Python and without an engine.

Files: :func:`list_files` finds them, :func:`plan_partitions` shares them out,

:func:`read_split` reads one share as messages (:func:`read_lines` leaves most lines in one
piece), and :class:`FileOffset` says how far a stream
of files has come.  :func:`open_claim_check_store` opens the folder of messages that were too
large for their topic; :class:`KeptSchemaStore` keeps table schemas between runs, in a
:class:`SchemaDirectory`.  Paths are anything that fsspec can open; fsspec and zstandard come
with ``pip install 'cdcfmt-core[files]'`` and are imported on use.
Kafka has a package of its own, :mod:`cdcfmt_core.sources.kafka`.
"""

from cdcfmt_core.sources.claim_checks import open_claim_check_store, open_claim_check_writer
from cdcfmt_core.sources.ends import read_ends, spread
from cdcfmt_core.sources.file_offset import FileOffset
from cdcfmt_core.sources.files import FileInfo, list_files
from cdcfmt_core.sources.filesystem import open_filesystem
from cdcfmt_core.sources.kept_schemas import KeptSchemaStore
from cdcfmt_core.sources.lines import BadLine, LineFormat, Lines, one_by_one, parse_line
from cdcfmt_core.sources.reader import HowToRead, read_lines, read_split
from cdcfmt_core.sources.schema_directory import SchemaDirectory
from cdcfmt_core.sources.splits import FileSplit, plan_partitions
from cdcfmt_core.sources.whole_messages import wrap_line

__all__ = [
    "BadLine",
    "FileInfo",
    "FileOffset",
    "FileSplit",
    "HowToRead",
    "KeptSchemaStore",
    "LineFormat",
    "Lines",
    "SchemaDirectory",
    "list_files",
    "one_by_one",
    "open_claim_check_store",
    "open_claim_check_writer",
    "open_filesystem",
    "parse_line",
    "plan_partitions",
    "read_ends",
    "read_lines",
    "read_split",
    "spread",
    "wrap_line",
]
