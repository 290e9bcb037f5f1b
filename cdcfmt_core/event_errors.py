"""Errors of encoding: add the event's position, refuse events that cannot be written whole."""

from __future__ import annotations

from typing import Any, Final

from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import Corrupt, RowChange, SchemaChange, TableSchema, TableSchemaEvent
from cdcfmt_core.texts import qualified

_WITHOUT_BEFORE: Final = frozenset({"insert", "read", "upsert", "truncate"})
_WITHOUT_AFTER: Final = frozenset({"delete", "truncate"})


def locate(error: EncodeError, protocol: str, event: Any) -> EncodeError:
    """The error, with the format and the event's table and commit_ts added."""
    named = _named_by(event)
    table = named and qualified(named.database, named.schema, named.table)
    if isinstance(event, Corrupt):
        error = error.at(reason=f"a message that cannot be decoded is not written ({event.error})")
    commit_ts = getattr(event, "commit_ts", None)
    return error.at(protocol=protocol, table=table or None, commit_ts=commit_ts)


def check_written(event: Any) -> None:
    """Reject an event of which a format would write only a part, or that no source has.

    :raises EncodeError: for a negative commit_ts, and for an image that the operation cannot have.
    """
    commit_ts = getattr(event, "commit_ts", None)
    if type(commit_ts) is int and commit_ts < 0:
        raise EncodeError("the commit_ts is negative; leave it out if there is none")
    if type(event) is not RowChange:
        return
    for name, image, ops in (
        ("before", event.before, _WITHOUT_BEFORE),
        ("after", event.after, _WITHOUT_AFTER),
    ):
        if image is not None and event.op in ops:
            raise EncodeError(
                f"{event.op} has no {name} image, so it would be lost: leave it out (NULL on "
                "Spark), or set another op"
            )


def check_name(event: Any) -> None:
    """Reject a table name with a schema, for formats whose messages have no field for it.

    :raises UnsupportedEventError: if the event's table has a schema.
    """
    named = _named_by(event)
    if named is not None and named.schema:
        raise UnsupportedEventError(
            "the table's name has a schema, which the format cannot express; write debezium, "
            "dts-avro or cloudcanal-json, or rename the table"
        )


def _named_by(event: Any) -> TableSchema | SchemaChange | None:
    """The part of an event that names its table; None if it has no table."""
    if isinstance(event, RowChange):
        return event.table
    if isinstance(event, TableSchemaEvent):
        return event.table_schema
    return event if isinstance(event, SchemaChange) else None
