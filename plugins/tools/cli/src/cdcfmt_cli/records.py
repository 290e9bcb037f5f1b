"""Events and changes as records, with the same columns as in Spark (docs/spark.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cdcfmt_cli.json_text import image_values, time_text
from cdcfmt_cli.reading import Decoded
from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import (
    KIND_OF,
    Corrupt,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    named_by,
    split_key_update,
)
from cdcfmt_toolkit.column_names import UnitedNames, lacking, option_names
from cdcfmt_toolkit.row_changes import change_images, change_position, extra_of, fields_of_schema

EVENT_COLUMNS = (
    "kind", "op", "database", "schema", "table", "commit_ts", "commit_time", "source_time",
    "emit_time", "key_columns", "before", "after", "ddl", "table_schema", "extra", "_source",
    "_corrupt_record",
)  # fmt: skip

CHANGE_COLUMNS = (
    "_change_type", "_commit_version", "_commit_timestamp", "_sequence", "_absent",
    "_corrupt_record",
)  # fmt: skip


def event_record(
    decoded: Decoded, event: Event, *, key_columns: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An event as a record of the events shape, without null columns."""
    commit_ts = getattr(event, "commit_ts", None)
    record: dict[str, Any] = {
        "kind": KIND_OF[type(event)],
        **table_of(event),
        "commit_ts": commit_ts,
        "commit_time": time_text(None if commit_ts is None else (commit_ts >> 18) * 1000),
        "source_time": time_text(getattr(event, "source_time", None)),
        "emit_time": time_text(getattr(event, "emit_time", None)),
    }
    if isinstance(event, RowChange):
        record["op"] = event.op
        record["key_columns"] = _keys(event, key_columns)
        for name, image in (("before", event.before), ("after", event.after)):
            record[name] = None if image is None else image_values(event.table, image)
    if isinstance(event, SchemaChange):
        record["ddl"] = {"query": event.query, "type": event.ddl_type}
    schema: TableSchema | None = getattr(event, "table_schema", None)
    if schema is not None:
        record["table_schema"] = fields_of_schema(schema)
    record["extra"] = extra_of(event) or None
    record["_source"] = _source(decoded.message, event, decoded.protocol)
    if isinstance(event, Corrupt):
        record["_corrupt_record"] = _corrupt_record(decoded, event)
    return {name: record[name] for name in EVENT_COLUMNS if record.get(name) is not None}


def change_records(
    decoded: Decoded,
    event: Event,
    *,
    after_only: bool,
    key_columns: tuple[str, ...],
    columns: UnitedNames,
) -> Iterator[dict[str, Any]]:
    """An event as rows of the changes shape; none unless it is a change or corrupt.

    ``columns`` are all output columns of the table; those missing from an image are absent.
    """
    if isinstance(event, Corrupt):
        yield {"_corrupt_record": _corrupt_record(decoded, event)}
    elif isinstance(event, RowChange):
        keys = _keys(event, key_columns)
        if key_columns:
            _check_keys(event, keys)
        names = columns.of(event.table.column_names)
        for part in split_key_update(event, keys) if after_only else [event]:
            for change_type, image in change_images(part, after_only=after_only):
                added = change_position(decoded.message, part, change_type, keys)
                added["commit_timestamp"] = time_text(added["commit_timestamp"])
                present = {names[name] for name in image.values}
                absent = [name for name in columns if name not in present]
                cells = image_values(event.table, image)
                yield {
                    **{names[name]: value for name, value in cells.items()},
                    **{f"_{name}": value for name, value in added.items()},
                    "_absent": absent,
                }


def _keys(event: RowChange, key_columns: tuple[str, ...]) -> tuple[str, ...]:
    if not key_columns:
        return event.table.key_columns
    return option_names("keyColumns", key_columns, event.table.column_names)


def _check_keys(event: RowChange, keys: tuple[str, ...]) -> None:
    if event.after is not None and event.after.complete:
        reason = lacking(keys, event.table.column_names)
        if reason:
            raise OptionError(f"{event.table.database}.{event.table.table}: {reason}")


def table_of(event: Event) -> dict[str, str | None]:
    """``database``, ``schema`` and ``table``; None if the event has no such name."""
    named = named_by(event)
    return {name: getattr(named, name, None) or None for name in ("database", "schema", "table")}


def table_name(event: Event) -> str:
    """``database.table`` for people; empty if the event has no table."""
    return ".".join(filter(None, table_of(event).values()))


def _source(message: Message, event: Event, protocol: str | None) -> dict[str, Any]:
    source = {
        "protocol": protocol,
        **message.position,
        "index": event.index,
        "timestamp": time_text(None if message.timestamp is None else message.timestamp * 1000),
    }
    return {name: value for name, value in source.items() if value is not None}


def _corrupt_record(decoded: Decoded, event: Corrupt) -> dict[str, Any]:
    message = decoded.message
    return {
        "reason": str(event.error),
        "key": message.key,
        "value": message.value,
        "source": _source(message, event, decoded.protocol),
    }
