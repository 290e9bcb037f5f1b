"""Errors of encoding: add the event's position, refuse events that cannot be written whole."""

from __future__ import annotations

from typing import Any

from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.event_checks import IMAGES_OF_OP
from cdcfmt_core.events import Corrupt, RowChange, named_by
from cdcfmt_core.texts import qualified


def locate(error: EncodeError, protocol: str, event: Any) -> EncodeError:
    """The error, with the format and the event's table and commit_ts added."""
    named = named_by(event)
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
    allowed = IMAGES_OF_OP.get(event.op, (None, None))
    images = ("before", event.before), ("after", event.after)
    for (name, image), may_exist in zip(images, allowed, strict=True):
        if image is not None and may_exist is False:
            raise EncodeError(
                f"{event.op} has no {name} image, so it would be lost: leave it out (NULL on "
                "Spark), or set another op"
            )


def check_name(event: Any) -> None:
    """Reject a table name with a schema, for formats whose messages have no field for it.

    :raises UnsupportedEventError: if the event's table has a schema.
    """
    named = named_by(event)
    if named is not None and named.schema:
        raise UnsupportedEventError(
            "the table's name has a schema, which the format cannot express; write debezium, "
            "dts-avro or cloudcanal-json, or rename the table"
        )
