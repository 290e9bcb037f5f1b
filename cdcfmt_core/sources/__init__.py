"""Where messages come from, in plain Python and without an engine.

Files: :func:`list_files` finds them, :func:`plan_partitions` shares them out,
:func:`read_split` reads one share as messages.  :func:`open_claim_check_store` opens the
folder of messages that were too large for their topic.  Paths are anything that fsspec can
open; fsspec and zstandard come with ``pip install 'cdcfmt-core[files]'`` and are imported
on use.  Kafka has a package of its own, :mod:`cdcfmt_core.sources.kafka`.
"""

from cdcfmt_core.sources.claim_checks import open_claim_check_store, open_claim_check_writer
from cdcfmt_core.sources.files import FileInfo, list_files
from cdcfmt_core.sources.filesystem import open_filesystem
from cdcfmt_core.sources.lines import BadLine, LineFormat, parse_line, wrap_line
from cdcfmt_core.sources.reader import read_split
from cdcfmt_core.sources.splits import FileSplit, plan_partitions

__all__ = [
    "BadLine",
    "FileInfo",
    "FileSplit",
    "LineFormat",
    "list_files",
    "open_claim_check_store",
    "open_claim_check_writer",
    "open_filesystem",
    "parse_line",
    "plan_partitions",
    "read_split",
    "wrap_line",
]
