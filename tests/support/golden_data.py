"""The golden messages in ``tests/golden`` and the truth behind them (see its README)."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import attrs

from cdcfmt_core import opening
from cdcfmt_core.codec import Decode, DecoderContext
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import Message
from cdcfmt_core.options import validate
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_scan import open_input_scan
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import GeometryValue, InvalidValue
from cdcfmt_files.sources import list_files, plan_partitions, read_split
from support.schema_registry import with_registry
from support.workspace import ROOT

GOLDEN = ROOT / "tests/golden"
SOURCE_ZONE = "Asia/Shanghai"

Truth: TypeAlias = Mapping[str, Any]
"""One event of a truth file, or one value of it (``{"t", "v", "n"?, "hex"?}``)."""


# --- Messages and truth ---------------------------------------------------------------


@attrs.frozen
class GoldenMessage:
    """A message, its producer's name for it, and its true events."""

    seq: int
    key: bytes | None
    value: bytes | None
    kind: str
    truth: tuple[Truth, ...]

    @property
    def message(self) -> Message:
        return Message(self.key, self.value, offset=self.seq)


@attrs.frozen
class Variant:
    """The messages of one producer configuration; ``truth`` is every event that there was."""

    protocol: str
    name: str
    config: Mapping[str, Any]
    truth: Mapping[int, Truth]
    messages: tuple[GoldenMessage, ...]
    claims: Path | None

    @property
    def compression(self) -> str:
        compression: str = self.config["large-message-handle"]["large-message-handle-compression"]
        return compression

    @property
    def tables(self) -> list[tuple[str, str]]:
        """The tables that have rows, in order."""
        rows = (t for message in self.messages for t in message.truth if t["kind"] == "row")
        return list(dict.fromkeys((t["schema"], t["table"]) for t in rows))


def read_jsonl(path: str) -> Iterator[dict[str, Any]]:
    """The objects of a ``.jsonl.gz`` below ``tests/golden``."""
    with gzip.open(GOLDEN / path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def case_messages(name: str) -> list[Message]:
    """The messages of ``tests/golden/cases/<name>.jsonl``: bare values, or whole messages."""
    messages = []
    for at, line in enumerate((GOLDEN / "cases" / f"{name}.jsonl").read_bytes().splitlines()):
        wire = json.loads(line)
        if {"value", "topic"} <= wire.keys():
            key, value = (
                None if wire[part] is None else base64.b64decode(wire[part])
                for part in ("key", "value")
            )
            position = {part: wire[part] for part in ("topic", "partition", "offset")}
            messages.append(Message(key, value, timestamp=wire["timestamp"], **position))
        else:
            messages.append(Message(None, line, topic="cases", partition=0, offset=at))
    return messages


def variant_names(protocol: str) -> list[str]:
    return sorted(path.name for path in (GOLDEN / "ticdc" / protocol).iterdir() if path.is_dir())


@cache
def load_variant(protocol: str, name: str) -> Variant:
    folder = f"ticdc/{protocol}/{name}"
    meta = json.loads((GOLDEN / folder / "meta.json").read_text(encoding="utf-8"))
    assert meta["tz"] == SOURCE_ZONE
    truth = {event["seq"]: event for event in read_jsonl(f"ticdc/{meta['truth']}.gz")}
    messages = tuple(
        GoldenMessage(
            line["seq"],
            None if line["key_b64"] is None else base64.b64decode(line["key_b64"]),
            base64.b64decode(line["value_b64"]),
            line["type"],
            tuple(truth[seq] for seq in line["events"]),
        )
        for line in read_jsonl(f"{folder}/messages.jsonl.gz")
    )
    claims = GOLDEN / folder / "claims"
    return Variant(
        protocol, name, meta["config"], truth, messages, claims if claims.is_dir() else None
    )


def about(messages: list[Message], table: str, reading: Mapping[str, str]) -> list[Message]:
    """The messages that name a table, and every eighth other one; all where they are compressed."""
    if "largeMessageHandleCompression" in reading:
        return messages
    name = table.encode()
    return [
        each
        for at, each in enumerate(messages)
        if at % 8 == 0 or name in (each.value or b"") or name in (each.key or b"")
    ]


def native_messages(path: str) -> Iterator[Message]:
    """The messages of a native producer, with topic, partition and offset."""
    for line in read_jsonl(f"native/{path}.jsonl.gz"):
        key, value = line["key_b64"], line["value_b64"]
        yield Message(
            None if key is None else base64.b64decode(key),
            None if value is None else base64.b64decode(value),
            tuple(
                (name, None if data is None else base64.b64decode(data))
                for name, data in line["headers"]
            ),
            line["topic"],
            line["partition"],
            line.get("offset"),
            line.get("timestamp_ms"),
        )


def dumped_tables() -> dict[str, list[dict[str, tuple[str, str | None]]]]:
    """The rows of database ``shop`` at the end of the native workload: types and texts."""
    with gzip.open(GOLDEN / "native/workload/final_rows.json.gz", "rt", encoding="utf-8") as file:
        tables = json.load(file)
    return {
        name: [
            {
                column["name"]: (column["type"], text)
                for column, text in zip(table["columns"], row, strict=True)
            }
            for row in table["rows"]
        ]
        for name, table in tables.items()
    }


# --- Decoding -------------------------------------------------------------------------


CODECS = {
    "canal-json": "canal-json",
    "debezium": "debezium",
    "open": "open-protocol",
    "simple-avro": "simple",
    "simple-json": "simple",
}
"""Folder of the golden messages → the format that reads them."""


def reading_options(variant: Variant) -> dict[str, str]:
    """The options required for this changefeed, for decoder and Spark."""
    options = {"protocol": CODECS[variant.protocol], "sourceTimeZone": SOURCE_ZONE}
    if variant.compression != "none":
        options["largeMessageHandleCompression"] = variant.compression
    if variant.claims is not None:
        options["claimCheckStorageUri"] = str(variant.claims)
    if variant.config["delete-only-output-handle-key-columns"]:
        options["deleteOnlyOutputHandleKeyColumns"] = "true"
    if variant.protocol == "open" and not variant.config["open-output-old-value"]:
        options["oldValue"] = "false"
    return options


def open_decoder(
    counts: Counter[str] | None = None, schemas: SchemaStore | None = None, **options: str
) -> MessageDecoder:
    """A decoder of ``protocol`` with these options, in the spelling that users write."""
    protocol = options.pop("protocol")
    given = with_registry(protocol, options, writes=False)
    return opening.open_decoder(protocol, given, counts=counts, schemas=schemas)


def codec_decoder(name: str, context: DecoderContext, **options: Any) -> Decode:
    """A format's own decoder, in a context of the test's."""
    spec = default_registry().get_codec(name)
    return spec.open_decoder(validate(options, spec.options, owner=name), context)


def scan_schemas(messages: Iterable[Message], **options: str) -> SchemaStore:
    """The table schemas of all messages, as a batch reader scans them first."""
    scan = open_input_scan(
        *opening.decoding_options(options["protocol"], options, default_registry())
    )
    assert scan is not None
    store = SchemaStore()
    for message in messages:
        for record in scan(message):
            store.add(record)
    return store


def read_files(paths: Iterable[Path]) -> list[Message]:
    """The messages of files, through :mod:`cdcfmt_files.sources`."""
    partitions = plan_partitions(
        list_files([str(path) for path in paths]),
        max_partition_bytes=1 << 20,
        min_partitions=1,
    )
    messages: list[Message] = []
    for split in (split for splits in partitions for split in splits):
        for message in read_split(split):
            assert isinstance(message, Message), message
            messages.append(message)
    return messages


# --- Values ---------------------------------------------------------------------------


@attrs.frozen
class Bits:
    """A float by its IEEE bits; ``text`` is shown in failures."""

    hex: str
    text: str = attrs.field(eq=False, default="")

    @property
    def value(self) -> float:
        number: float
        (number,) = struct.unpack(">f" if len(self.hex) == 8 else ">d", bytes.fromhex(self.hex))
        return number

    def of(self, value: float) -> str:
        """The bits of ``value`` in the width of this one."""
        return struct.pack(">f" if len(self.hex) == 8 else ">d", value).hex()


def python_value(truth: Truth | None) -> Any:
    """A true value as an image holds it (cdcfmt_core/types.py); floats are :class:`Bits`."""
    return None if truth is None else _PYTHON[truth["t"]](truth)


def _text(truth: Truth) -> str:
    if "hex" in truth:
        return bytes.fromhex(truth["hex"]).decode("utf-8", "surrogateescape")
    text: str = truth["v"]
    return text


def _calendar(parse: Callable[[str], Any]) -> Callable[[Truth], Any]:
    def read(truth: Truth) -> Any:
        try:
            return parse(truth["v"])
        except ValueError:
            # MySQL has days that no calendar has, and stores them.
            return InvalidValue(truth["v"])

    return read


def _datetime(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f" if "." in text else "%Y-%m-%d %H:%M:%S")


def _instant(text: str) -> datetime:
    return _datetime(text).replace(tzinfo=ZoneInfo(SOURCE_ZONE)).astimezone(UTC)


def _time(truth: Truth) -> timedelta:
    hours, minutes, seconds = truth["v"].lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    value = timedelta(
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(whole),
        microseconds=int(fraction.ljust(6, "0")),
    )
    return -value if truth["v"].startswith("-") else value


def _vector(truth: Truth) -> list[Bits]:
    numbers = truth["v"].strip("[]")
    return [
        Bits(struct.pack(">f", float(number)).hex(), number)
        for number in (numbers.split(",") if numbers else [])
    ]


_PYTHON: dict[str, Callable[[Truth], Any]] = {
    "int": lambda truth: int(truth["v"]),
    "uint": lambda truth: int(truth["v"]),
    "float": lambda truth: Bits(truth["hex"], truth["v"]),
    "double": lambda truth: Bits(truth["hex"], truth["v"]),
    "decimal": lambda truth: Decimal(truth["v"]),
    "str": _text,
    "bytes": lambda truth: bytes.fromhex(truth["v"]),
    "date": _calendar(date.fromisoformat),
    "datetime": _calendar(_datetime),
    "timestamp": _calendar(_instant),
    "time": _time,
    "year": lambda truth: int(truth["v"]),
    "enum": lambda truth: truth["v"],
    "set": lambda truth: truth["v"],
    "bit": lambda truth: int(truth["n"]),
    "json": lambda truth: truth["v"],
    "vector": _vector,
}


def dumped_value(type_: str, text: str | None) -> Any:
    """A dumped value as an image holds it; binary and geometry are dumped in hex, in UTC."""
    if text is None:
        return None
    base = type_.partition("(")[0].partition(" ")[0]
    if base in ("float", "double"):
        return Bits(struct.pack(">f" if base == "float" else ">d", float(text)).hex(), text)
    if base in ("point", "geometry"):
        data = bytes.fromhex(text)
        return GeometryValue(int.from_bytes(data[:4], "little"), data[4:])
    if base == "timestamp":
        return _datetime(text).replace(tzinfo=UTC)
    if base.endswith(("int", "year", "bit")):
        return int(text)
    if base.endswith(("binary", "blob")):
        return bytes.fromhex(text)
    return _DUMPED.get(base, str)(text)


_DUMPED: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": _datetime,
    "time": lambda text: _time({"v": text}),
}


def same(expected: Any, actual: Any) -> bool:
    """Equal in type and value: a decimal's digits, a float's bits, an instant's zone."""
    if isinstance(expected, Bits):
        return type(actual) is float and expected.of(actual) == expected.hex
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, dict):
        return expected.keys() == actual.keys() and all(
            same(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, Decimal):
        return str(expected) == str(actual)
    if isinstance(expected, datetime) and expected.utcoffset() != actual.utcoffset():
        return False
    return bool(expected == actual)


# --- Losses ---------------------------------------------------------------------------


@attrs.frozen
class Loss:
    """A loss of a wire: table, column (``*`` for all), and the reason.

    ``aspect`` names the lost property; each test checks the replacement.
    """

    table: str
    column: str
    aspect: str
    reason: str


class Losses:
    """A strict list: unlisted values must be right, and listed ones must differ.

    Losses of tables that do not occur in ``tables`` do not count.
    """

    def __init__(self, listed: Iterable[Loss], tables: Iterable[str]) -> None:
        occurring = {"*", *tables}
        self._listed = {
            (loss.table, loss.column, loss.aspect): loss
            for loss in listed
            if loss.table in occurring
        }
        self._seen: Counter[tuple[str, str, str]] = Counter()

    def covers(self, table: str, column: str, aspect: str) -> bool:
        """Whether this is listed; call it only for a difference."""
        for place in ((table, column, aspect), (table, "*", aspect), ("*", column, aspect)):
            if place in self._listed:
                self._seen[place] += 1
                return True
        return False

    def assert_all_seen(self, *aspects: str) -> None:
        """Fail for a listed loss of these aspects that did not occur."""
        unused = [
            loss
            for place, loss in self._listed.items()
            if loss.aspect in aspects and place not in self._seen
        ]
        assert not unused, f"listed as lost, but it is not: {unused}"
