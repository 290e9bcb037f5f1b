"""Layout of rows, for the compiled kernel.  Source: https://maxwells-daemon.io/dataformat/."""

from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_maxwell.decode import OPS
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.layout import Extra, Layout

ROLES = {
    "database": "database",
    "table": "table",
    "type": "op",
    "ts": "source_time",
    "data": "after",
    "old": "before",
}
# Maxwell's optional members: the decoder reads messages with undeclared members.
OTHERS = (
    *("xid", "xoffset", "commit", "position", "gtid", "server_id", "thread_id", "schema_id"),
    *("primary_key", "primary_key_columns", "query", "comment"),
)


def encodings(value, table):
    return {column.name: Encoding("json-value") for column in table.columns}


def extra(envelope):
    return {(name,): Extra(name, without=()) for name in OTHERS}


def open_layouts(options):
    return [
        Layout(
            members={**ROLES, **dict.fromkeys(OTHERS, "extra")},
            ops=OPS,
            encodings=encodings,
            extra=extra,
            keyed=True,  # The message key has the key columns.
            deleted_row="after",  # `data`
            completes_before=True,
            times=(0, MAX_TIMESTAMP // 1_000_000, 1_000_000),
        )
    ]
