"""Table schemas from the whole input, before any part of it is decoded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from cdcfmt_core.codec import MarkedScan
from cdcfmt_core.events import Message
from cdcfmt_core.schema_scan import open_input_scan, open_schema_scan
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, KeptSchemaStore, SchemaDirectory
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.options import ReadOptions

logger = open_logger("pyspark_cdcfmt")

_SECONDS_BETWEEN_NEWS = 10


def open_store(options: ReadOptions) -> SchemaStore:
    """An empty store, or one over the folder ``schemaStore``, which is made if need be."""
    limit, folder = options["maxCachedSchemaBytes"], options["schemaStore"]
    if folder is None:
        return SchemaStore(limit)
    directory = SchemaDirectory(folder, options.storage_options)
    directory.check()
    return KeptSchemaStore(directory, limit)


def find_schemas(
    options: ReadOptions,
    read: Callable[[MarkedScan[Any]], Iterable[Message | BadLine]],
    *,
    statements: bool = True,
) -> SchemaStore:
    """What the messages say of their tables, and ``schemaStore``.

    Nothing is looked for where no format needs it.

    ``read`` gives the messages, at least those in which a scan may find something; it is only
    called if some format may need them.  Without ``statements`` DDL says nothing: for a part
    of an input, where what it says would hang on the part.
    """
    store = open_store(options)
    open_scan = open_input_scan if statements else open_schema_scan
    scan = open_scan(options.values, options.codec) if options["scanSchemas"] else None
    if scan is None:
        return store
    said = time.monotonic()
    for count, message in enumerate(read(scan)):
        if count % 1000 == 0 and time.monotonic() - said > _SECONDS_BETWEEN_NEWS:
            said = time.monotonic()
            logger.warning(
                "cdc: looking for table schemas, %d messages read and %d schemas found so far; "
                "scanSchemas=false spares it where messages carry their types",
                count,
                len(store),
            )
        if isinstance(message, Message):
            for record in scan(message):
                store.add(record)
    return store
