"""Errors of messages that no format recognises, and names for files and values of other kinds.

Only errors use this module: it looks at the first bytes, and never guesses for data that a format
recognises.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import DecodeError, join_names
from cdcfmt_core.events import Message
from cdcfmt_core.recognition import CERTAIN_ENOUGH, confidence, recognise
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_toolkit.json_size import check_values
from cdcfmt_toolkit.large_messages import compression_hint
from cdcfmt_toolkit.wire_json import loads_exact

HEAD_BYTES: Final = 1 << 14
"""The part of a file to look at."""

BY_DATAFRAME: Final = "read it as a DataFrame by Spark and pass that to decode(df)"
RECOMPRESS: Final = "decompress it or compress it as .gz or .zst"
RENAME: Final = "its name must end in {}"
EXTRACT: Final = "extract its files"

_SIGNATURES: Final[tuple[tuple[bytes, str, str], ...]] = (
    (b"PAR1", "Parquet", BY_DATAFRAME),
    (b"ORC", "ORC", BY_DATAFRAME),
    (b"Obj\x01", "an Avro container", f"{BY_DATAFRAME} (format avro)"),
    (b"ARROW1\0\0", "Arrow", BY_DATAFRAME),
    (b"SEQ\x06", "a Hadoop sequence file", BY_DATAFRAME),
    (b"SQLite format 3\0", "an SQLite database", BY_DATAFRAME),
    (b"\x1f\x8b\x08", "gzip", RENAME.format(".gz")),
    (b"\x28\xb5\x2f\xfd", "zstd", RENAME.format(".zst")),
    (b"BZh", "bzip2", RENAME.format(".bz2")),
    (b"\xfd7zXZ\0", "xz", RECOMPRESS),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", EXTRACT),
    (b"PK\x03\x04", "a zip archive (or a spreadsheet)", EXTRACT),
    (b"%PDF-", "a PDF document", "give messages"),
    (b"<?xml", "XML", "give messages; an object store answers errors so"),
    (b"<!DOCTYPE", "HTML", "give messages; a server answers errors so"),
    (b"<html", "HTML", "give messages; a server answers errors so"),
)
"""First bytes → what they begin, and what to do."""

_TO_UTF8: Final = "convert it to UTF-8: iconv -f {} -t UTF-8"
_BOMS: Final = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_PRINTABLE: Final = frozenset((9, 10, 13, *range(32, 127)))
_FEWEST_UNITS: Final = 4
_UNITS: Final = 32

_KCAT: Final = (
    "output of kcat -J",
    "pipe it through jq -c '{topic, partition, offset, key: (.key | if . then @base64 else . end), "
    "value: (.payload | if . then @base64 else . end)}', or read the topic itself",
)
_ARRAY: Final = "a JSON array", "write one message per line: jq -c '.[]'"
_PRETTY: Final = "JSON over several lines", "write one message per line: jq -c ."
_CSV: Final = "CSV", "messages are JSON or binary; read a table by spark.read.csv"
_ROW: Final = (
    "a row without an envelope",
    "nothing in it names its table and operation; for messages of Debezium's transform "
    "ExtractNewRecordState set protocol=debezium, other rows are for spark.read.json",
)
_CLOUD_EVENT: Final = (
    "a CloudEvent",
    "write messages without that envelope (Debezium: value.converter=JsonConverter), or pass its "
    "data to decode(df)",
)
_CLOUD_EVENT_FIELDS: Final = frozenset({"specversion", "id", "source", "type"})
_AVRO_JSON: Final = (
    "Avro's JSON, as console consumers print it",
    'each value stands in its type, as in {"int": 1}; read the topic, or write it by JsonConverter',
)
_REGISTRY: Final = (
    "set schema.registry.url to the registry's address (package cdcfmt-schema-registry), and see "
    "that the option protocol, if set, is the format of its schemas"
)
_GLUE: Final = (
    "set schema.registry.glue.region to the registry's region (package "
    "cdcfmt-schema-registry[glue])"
)
_SCHEMA_HEADER: Final = re.compile(r"apicurio\.value\.(globalId|contentId)|__value_schema_id")
_AVRO_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "int": int,
    "long": int,
    "float": (int, float, Decimal),
    "double": (int, float, Decimal),
    "string": str,
    "bytes": str,
    "boolean": bool,
}
_FEWEST_LINES: Final = 2
_FEWEST_MARKS: Final = 4
_MOST_LINES: Final = 20


def not_recognised(
    codecs: Iterable[CodecSpec],
    message: Message,
    broken: Sequence[str] = (),
    schema: WriterSchema | None = None,
) -> DecodeError:
    """The error for a message that no format recognises; ``broken``: packages with formats."""
    if schema is not None:
        able = join_names(codec.name for codec in codecs if codec.sniff_schema is not None)
        return DecodeError(
            f"no installed format recognises the writer schema {schema.id} ({schema.kind}) of this "
            f"message (formats that read a schema registry: {able}); set the option protocol",
            sample=schema.text,
        )
    value = message.value or b""
    if (kind := _kind_of(value, headers=message.headers)) is not None:
        return DecodeError(kind, sample=message.value)
    problem = _problem_of(value)
    problem = "" if problem is None else f"{problem}; "
    also = f"; broken: {join_names(broken)}, see cdcfmt formats" if broken else ""
    return DecodeError(
        f"{problem}no installed format recognises this message (installed: "
        f"{join_names(codec.name for codec in codecs)}{also}); set the option protocol, "
        "and largeMessageHandleCompression if it is compressed",
        sample=message.value,
    )


def of_another_format(
    own: CodecSpec,
    codecs: Iterable[CodecSpec],
    message: Message,
    error: DecodeError,
    schema: WriterSchema | None = None,
) -> DecodeError:
    """The error of a message that ``own`` cannot decode; names the format that it looks like."""
    if confidence(own, message, schema=schema) >= CERTAIN_ENOUGH:
        return error
    where = f"{error.field}: " if error.field else ""
    value = message.value or b""
    if schema is None and (kind := _kind_of(value, rows=False, headers=message.headers)):
        return DecodeError(f"{kind} ({where}{error.reason})")
    best = recognise(codecs, message, schema)
    if best is None or best is own:
        return error
    other = DecodeError(
        f"protocol={own.name}, but the message looks like {best.name}: set "
        f"protocol={best.name} ({where}{error.reason})"
    )
    other.sample = error.sample
    return other


def foreign_file(head: bytes, *, lines: bool, recognises: Callable[[bytes], bool]) -> str | None:
    """What a file is, and what to do, if it has no messages; None for all others.

    :param head: its first HEAD_BYTES, or all of it; uncompressed.
    :param lines: whether messages end with line ends.
    :param recognises: whether a line is a message of a format.
    """
    kind = _binary(head)
    if kind is None and lines:
        kind = _text(head.removeprefix(b"\xef\xbb\xbf"))
        if kind is not None and recognises(head.partition(b"\n")[0].rstrip(b"\r")):
            kind = None
    return None if kind is None else "the file is {} and is not read: {}".format(*kind)


def _kind_of(
    value: bytes, *, rows: bool = True, headers: Sequence[tuple[str, bytes | None]] = ()
) -> str | None:
    """What a message's value is, and what to do, if it is of a known other kind.

    :param rows: whether a JSON object of single values is a row without an envelope.
    """
    kind = _framed_by(headers) or _binary(value) or _framed(value)
    if kind is None and value.lstrip()[:1] in (b"{", b"["):
        try:
            check_values(value, 0)
            kind = _json(loads_exact(value))
        except DecodeError:
            return None
        kind = None if kind == _ROW and not rows else kind
    return None if kind is None else "the value is {}: {}".format(*kind)


def check_record(record: Mapping[str, Any], *parts: Any) -> None:
    """Check that a record, and its parts, are not in another envelope or form.

    :raises DecodeError: names the kind.
    """
    if record.keys() >= _CLOUD_EVENT_FIELDS:
        raise DecodeError("the value is {}: {}".format(*_CLOUD_EVENT))
    for part in (record, *parts):
        if type(part) is dict and (
            is_avro_json(part)
            or any(type(value) is dict and is_avro_json(value) for value in part.values())
        ):
            raise DecodeError("the value is {}: {}".format(*_AVRO_JSON))


def is_avro_json(value: object) -> bool:
    """Whether a JSON value is in the form ``{"int": 1}``, with its Avro type."""
    if type(value) is not dict or len(value) != 1:
        return False
    ((name, inner),) = value.items()
    known = _AVRO_TYPES.get(name)
    if known is None:
        # A record's name: that of a class.
        return type(inner) is dict and (name == "Value" or name.endswith((".Value", ".Envelope")))
    return isinstance(inner, known) and (known is bool or type(inner) is not bool)


def _binary(data: bytes) -> tuple[str, str] | None:
    for mark, what, remedy in _SIGNATURES:
        if data.startswith(mark):
            return what, remedy
    for mark, charset in _BOMS:
        if data.startswith(mark):
            return charset, _TO_UTF8.format(charset)
    units = data[: 2 * _UNITS]
    units = units[: len(units) & ~1]
    if len(units) >= 2 * _FEWEST_UNITS:
        for zeros, texts, charset in (
            (units[1::2], units[::2], "UTF-16LE"),
            (units[::2], units[1::2], "UTF-16BE"),
        ):
            if not any(zeros) and _PRINTABLE.issuperset(texts):
                return charset, _TO_UTF8.format(charset)
    return None


def _framed_by(headers: Sequence[tuple[str, bytes | None]]) -> tuple[str, str] | None:
    for name, _ in headers:
        if _SCHEMA_HEADER.fullmatch(name):
            return f"framed by a schema registry (header {name})", _REGISTRY
    return None


def framing_of(data: bytes) -> str | None:
    """The framing of a schema registry that a key or value has, and what to do; None without."""
    found = _framed(data)
    return None if found is None else "{}: {}".format(*found)


def _framed(value: bytes) -> tuple[str, str] | None:
    """A schema registry's framing, with the id that it holds."""
    # Open Protocol's frames begin with a length of 8 bytes before JSON.
    if value[:1] == b"\0" and not (any(value[1:8]) and value[8:9] == b"{"):
        for end in (5, 9):
            if len(value) > end and (number := int.from_bytes(value[1:end], "big")):
                what = "JSON" if value[end : end + 1] in (b"{", b"[") else "Avro or Protobuf"
                text = f"framed by a schema registry (0x00 and the schema id {number}; {what})"
                return text, _REGISTRY
    if value[:1] == b"\x03" and value[1:2] in (b"\0", b"\5") and len(value) > 18:
        schema = uuid.UUID(bytes=value[2:18])
        return f"framed by AWS Glue's schema registry (schema version {schema})", _GLUE
    return None


def _text(head: bytes) -> tuple[str, str] | None:
    """The kind of a file whose lines are not messages."""
    lines = head.split(b"\n")
    # The last one may be cut off; the end of a short file has its line end, or is a whole line.
    whole = [line.rstrip(b"\r") for line in (lines[:-1] if len(head) >= HEAD_BYTES else lines)]
    whole = [line for line in whole if line.strip()][:_MOST_LINES]
    if not whole:
        return None
    first, second = whole[0].strip(), whole[1] if len(whole) > 1 else b""
    if all(map(_is_kcat, whole)):
        return _KCAT
    if first.startswith(b"[") and not first.endswith(b"]"):
        return _ARRAY
    if (
        first.startswith(b"{")
        and first.endswith((b"{", b",", b"[", b":"))
        and second.lstrip()[:1] in (b'"', b"}", b"]", b"{", b"[")
        and (second[:1] in (b" ", b"\t", b'"', b"}"))
    ):
        return _PRETTY
    return _CSV if len(whole) >= _FEWEST_LINES and _is_csv(whole) else None


_is_kcat_line = re.compile(rb'\s*\{"topic":"[^"]*","partition":\d+,"offset":\d+,').match


def _is_kcat(line: bytes) -> bool:
    return _is_kcat_line(line) is not None and b'"payload":' in line


def _is_csv(lines: list[bytes]) -> bool:
    if any(line.lstrip()[:1] in (b"{", b"[") for line in lines):
        return False
    try:
        text = b"".join(lines).decode()
    except UnicodeDecodeError:
        return False
    if not text.replace("\t", " ").isprintable():
        return False
    for mark in (b",", b";", b"\t", b"|"):
        counts = {re.sub(rb'"[^"]*"', b"", line).count(mark) for line in lines}
        if len(counts) == 1 and min(counts) * len(lines) >= _FEWEST_MARKS:
            return True
    return False


def _json(wire: Any) -> tuple[str, str] | None:
    if type(wire) is list:
        return _ARRAY
    if type(wire) is not dict:
        return None
    if wire.keys() >= _CLOUD_EVENT_FIELDS:
        return _CLOUD_EVENT
    if wire.keys() >= {"topic", "partition", "offset", "payload"}:
        return _KCAT
    try:
        check_record(wire, *wire.values())
    except DecodeError:
        return _AVRO_JSON
    of_envelopes = wire.keys() & {"before", "after", "op", "data", "payload", "table", "sql"}
    if wire and not (of_envelopes or any(type(each) in (dict, list) for each in wire.values())):
        return _ROW
    return None


def _problem_of(value: bytes) -> str | None:
    """The reason why no format can read a value; None if there is none, or it is unknown."""
    if value.lstrip()[:1] in (b"{", b"["):
        try:
            check_values(value, 0)
            loads_exact(value)
        except DecodeError as error:
            return error.reason
        return None
    hint = compression_hint(value) if value else None
    return None if hint is None else f"the value {hint} and protocol"
