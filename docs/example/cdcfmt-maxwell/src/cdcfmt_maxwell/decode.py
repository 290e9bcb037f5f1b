"""Maxwell's messages to events.  Source: https://maxwells-daemon.io/dataformat/."""

from functools import lru_cache

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, Heartbeat, Image, RowChange, SchemaChange, TableSchema
from cdcfmt_core.types import MAX_TIMESTAMP, Unknown
from cdcfmt_mysql.ddl import ddl_type_of
from cdcfmt_toolkit.wire_json import loads_object, object_of, text_of

OPS = {"insert": "insert", "update": "update", "delete": "delete", "bootstrap-insert": "read"}
KNOWN = {"database", "table", "type", "ts", "data", "old", "sql"}


def open_decoder(options, context):
    @lru_cache(10_000)  # One schema object for all rows of a table.
    def table_of(place, names, keys):
        columns = tuple(Column(name, "", Unknown(), key=name in keys) for name in names)
        return TableSchema(*place, columns, keys)

    def decode(message):
        if message.value is None:
            return []
        wire = loads_object(message.value)
        kind, place = text_of(wire, "type"), (text_of(wire, "database"), text_of(wire, "table"))
        extra = {name: value for name, value in wire.items() if name not in KNOWN} or None
        if kind in OPS:
            if not context.event_filter.wants("row", *place, None, OPS[kind], None):
                return []  # Skipped without decoding, as in the kernel: step 7.
            time = time_of(wire, 1_000_000)
            if not context.event_filter.wants_source_time("row", None, time):
                return []
            images = images_of(OPS[kind], wire)
            table = table_of(place, tuple(wire["data"]), key_columns_of(message.key))
            return [RowChange(OPS[kind], table, *images, source_time=time, extra=extra)]
        if kind.startswith(("table-", "database-")):
            query, time = text_of(wire, "sql"), time_of(wire, 1_000)
            return [SchemaChange(query, ddl_type_of(query), *place, source_time=time, extra=extra)]
        if kind in ("bootstrap-start", "bootstrap-complete"):
            return [Heartbeat(source_time=time_of(wire, 1_000_000), extra={"type": kind})]
        raise DecodeError("is not a message type of Maxwell", field="type", sample=kind)

    return decode


def images_of(op, wire):
    data, old = object_of(wire, "data"), object_of(wire, "old")
    if not data:
        raise DecodeError("a required field of a row event is missing", field="data")
    if op == "delete":
        return Image(data), None
    if op != "update" or old is None:
        return None, Image(data)
    same = tuple(name for name in data if name not in old)  # `old` has only changed columns.
    before = {name: old.get(name, data[name]) for name in data}
    return Image(before, completed=same), Image(data)


def key_columns_of(key):
    names = {} if key is None else loads_object(key, "key")
    return tuple(name[3:] for name in names if name.startswith("pk."))


def time_of(wire, microseconds):
    time = wire.get("ts")
    if type(time) is not int or not 0 <= time * microseconds <= MAX_TIMESTAMP:
        raise DecodeError("is not a time", field="ts", sample=time)
    return time * microseconds
