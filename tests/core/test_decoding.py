"""From messages to events: recognising formats, positions, filters, and foreign mistakes."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import pytest
from support.installed_plugins import DIALECTS

from cdcfmt_core import CodecSpec, DecoderContext, Registry, TypeMap, default_registry, hookimpl
from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder
from cdcfmt_core.errors import (
    BrokenPluginError,
    DecodeError,
    MissingDependencyError,
    UnknownFormatError,
)
from cdcfmt_core.events import (
    Column,
    Corrupt,
    Event,
    Heartbeat,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Transaction,
    Watermark,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.types import Int, Text

CANAL = {
    "id": 0,
    "database": "shop",
    "table": "orders",
    "pkNames": ["id"],
    "isDdl": False,
    "type": "INSERT",
    "es": 1639633141221,
    "ts": 1639633142960,
    "sql": "",
    "sqlType": {"id": 4},
    "mysqlType": {"id": "int"},
    "data": [{"id": "2"}],
    "old": None,
    "_tidb": {"commitTs": 429918007904436226},
}


def canal(**fields: Any) -> bytes:
    return json.dumps(CANAL | fields).encode()


ORDERS = TableSchema("shop", "orders", (Column("id", "int", Int(32)),), ("id",))


def row(table: TableSchema = ORDERS, commit_ts: int | None = 10) -> RowChange:
    return RowChange("insert", table, None, Image({"id": 1}), commit_ts=commit_ts)


@attrs.define(eq=False)
class Fake:
    """A format of a third party: its messages begin with its name."""

    name: str
    decode: Callable[[Message], Iterable[Any]]
    sniff: Callable[[Message], Any] | None = None
    more: Mapping[str, Any] = attrs.field(factory=dict)
    opened: list[DecoderContext] = attrs.field(factory=list)

    def open(self, options: Mapping[str, Any], context: DecoderContext) -> Any:
        self.opened.append(context)
        return self.decode

    def recognise(self, message: Message) -> float:
        return float((message.value or b"").startswith(self.name.encode()))

    @hookimpl
    def cdcfmt_register_codecs(self) -> list[CodecSpec]:
        return [
            CodecSpec(
                name=self.name,
                summary="",
                spec_url="",
                open_decoder=self.open,
                sniff=self.sniff or self.recognise,
                emits=frozenset({"row"}),
                api_version=1,
                **{"type_map": "mysql", **self.more},
            )
        ]

    @hookimpl
    def cdcfmt_register_type_maps(self) -> list[TypeMap]:
        return [TypeMap(self.name, {"int": Text(self.name)}.get)]


def open_decoder(
    *fakes: Fake,
    canal_too: bool = False,
    event_filter: EventFilter | None = None,
    **options: Any,
) -> MessageDecoder:
    registry = Registry(None if canal_too else DIALECTS)
    for fake in fakes:
        registry.register(fake, fake.name)
    codec_options: dict[str, Any] = {}
    for spec in registry.codecs().values():
        codec_options |= validate({}, spec.options, owner=spec.name)
    return MessageDecoder(
        validate(options, DECODING_OPTIONS, owner="the test"),
        codec_options,
        event_filter or EventFilter(),
        registry=registry,
    )


def reasons(events: list[Event]) -> list[str]:
    assert all(isinstance(event, Corrupt) for event in events)
    return [event.error.reason for event in events if isinstance(event, Corrupt)]


# Recognising


def test_auto_recognises_each_message() -> None:
    decoder = open_decoder(Fake("acme", lambda message: [Heartbeat()]), canal_too=True)
    assert decoder.protocol is None
    (event,) = decoder.decode(Message(None, canal()))
    assert isinstance(event, RowChange)
    assert decoder.protocol == "canal-json"
    assert decoder.decode(Message(None, b"acme 1")) == [Heartbeat()]
    assert decoder.protocol == "acme"
    (event,) = decoder.decode(Message(None, canal(type="DELETE")))
    assert isinstance(event, RowChange)
    assert event.op == "delete"


def test_unrecognised_message_is_corrupt() -> None:
    installed = ", ".join(sorted(["acme", *default_registry().codecs()]))
    decoder = open_decoder(Fake("acme", lambda message: [Heartbeat()]), canal_too=True)
    for value in (b"", b"{}", b"\x00\x01", b'{"before":null,"after":null,"op":"c"}'):
        decoder.decode(Message(None, b"acme 1"))
        (event,) = decoder.decode(Message(None, value, topic="t", partition=2, offset=7))
        assert isinstance(event, Corrupt)
        assert decoder.protocol is None
        text = str(event.error)
        # Not the last message's format: the format is unknown.
        assert text.startswith("topic t, partition 2, offset 7: no installed format recognises")
        assert f"(installed: {installed}); set the option protocol" in text
        assert event.error.sample == repr(value)


def test_tombstone_has_no_events_and_no_effect() -> None:
    decoder = open_decoder(Fake("acme", lambda message: []), canal_too=True)
    assert decoder.decode(Message(b"key", None)) == []
    decoder.decode(Message(None, canal()))
    assert decoder.decode(Message(b"key", None)) == []
    assert decoder.protocol == "canal-json"


def test_the_surest_format_wins() -> None:
    sure = Fake("sure", lambda message: [Heartbeat()], lambda message: 0.9)
    less = Fake("less", lambda message: [], lambda message: 0.6)
    unsure = Fake("unsure", lambda message: [], lambda message: 0.4)
    decoder = open_decoder(less, unsure, sure)
    assert decoder.decode(Message(None, b"x")) == [Heartbeat()]
    assert decoder.protocol == "sure"
    # Formats that are not needed are not opened.
    assert less.opened == unsure.opened == []
    decoder = open_decoder(unsure)
    assert "no installed format recognises" in reasons(decoder.decode(Message(None, b"x")))[0]


def broken_sniff(message: Message) -> float:
    raise RuntimeError("no")


@pytest.mark.parametrize(
    "sniff",
    [broken_sniff, *(lambda message, given=given: given for given in (None, "much", math.nan, 7))],
)
def test_broken_sniff_does_not_affect_other_formats(sniff: Callable[[Message], Any]) -> None:
    decoder = open_decoder(Fake("aaa", lambda message: [], sniff), canal_too=True)
    (event,) = decoder.decode(Message(None, canal()))
    assert isinstance(event, RowChange)


def test_a_named_protocol_is_not_sniffed() -> None:
    fake = Fake("acme", lambda message: [Heartbeat()], broken_sniff)
    decoder = open_decoder(fake, protocol="ACME")
    assert decoder.protocol == "acme"
    assert decoder.decode(Message(None, b"anything")) == [Heartbeat()]
    assert len(fake.opened) == 1
    with pytest.raises(UnknownFormatError):
        open_decoder(fake, protocol="canal-json")


def test_a_message_of_another_format_than_the_named_one() -> None:
    def refuse(message: Message) -> list[Event]:
        raise DecodeError("is not a number", field="a.b", sample="x")

    decoder = open_decoder(Fake("acme", refuse), canal_too=True, protocol="acme")
    (event,) = decoder.decode(Message(None, canal()))
    assert isinstance(event, Corrupt)
    assert str(event.error) == (
        "acme: protocol=acme, but the message looks like canal-json: set protocol=canal-json "
        "(a.b: is not a number); got 'x'"
    )
    # Of its own format, or of none.
    for value in (b"acme", b"anything"):
        (reason,) = reasons(decoder.decode(Message(None, value)))
        assert reason == "is not a number"


def test_truncated_json_without_recognised_format() -> None:
    decoder = open_decoder(Fake("acme", lambda message: []), canal_too=True)
    (reason,) = reasons(decoder.decode(Message(None, b'{"payload":{"sou')))
    assert reason.startswith("JSON ends at byte 16: truncated; no installed format recognises")


def test_a_message_without_value_that_may_be_a_delete() -> None:
    """Under auto it is never skipped while the format of its topic is unknown."""

    def keyed(message: Message) -> list[Event]:
        assert message.key is not None
        if not message.key.startswith(b"k"):
            raise DecodeError("a key of another format")
        if message.key == b"k?":
            return [Corrupt(DecodeError("which row is unknown"))]
        return [row()]

    def crashes(message: Message) -> list[Event]:
        return [row()] if message.value else [][0]

    def delete(key: bytes, topic: str) -> Message:
        return Message(key, None, topic=topic, partition=0, offset=5)

    fakes = [Fake("acme", keyed), Fake("other", lambda m: [row()] if m.value else [])]
    decoder = open_decoder(*fakes, Fake("broken", crashes))
    (reason,) = reasons(decoder.decode(delete(b"k1", "a")))
    assert "it may be a delete of acme; set the option protocol" in reason
    (reason,) = reasons(decoder.decode(delete(b"k?", "a")))
    assert "a delete of acme (which row is unknown)" in reason
    assert decoder.decode(delete(b"1", "a")) == []
    # Another topic shows nothing of this one.
    assert decoder.decode(Message(b"k1", b"other", topic="b")) == [row()]
    assert decoder.decode(delete(b"k1", "b")) == []
    assert reasons(decoder.decode(delete(b"k1", "a")))
    assert decoder.decode(Message(b"k1", b"acme", topic="a")) == [row()]
    assert decoder.decode(delete(b"k1", "a")) == [row()]
    assert decoder.decode(delete(b"k1", "b")) == []


def test_auto_without_any_format() -> None:
    assert "installed: none" in reasons(open_decoder().decode(Message(None, canal())))[0]


# Arguments of decoders


def test_the_context_of_a_format() -> None:
    fake = Fake("acme", lambda message: [], more={"type_map": "acme"})
    event_filter = EventFilter(include_tables=("shop.*",))
    options = {"protocol": "acme", "sourceTimeZone": "Asia/Shanghai", "maxMessageBytes": "1k"}
    open_decoder(fake, event_filter=event_filter, **options)
    (context,) = fake.opened
    assert context.resolve_type("int") == Text("acme")
    assert context.event_filter is event_filter
    assert str(context.time_zone) == "Asia/Shanghai"
    assert context.max_message_bytes == 1024


def test_another_type_map_by_name() -> None:
    fake = Fake("acme", lambda message: [])
    open_decoder(fake, protocol="acme")
    open_decoder(fake, protocol="acme", typeMap="acme")
    assert [context.resolve_type("int") for context in fake.opened] == [Int(32), Text("acme")]
    with pytest.raises(UnknownFormatError, match="unknown type map 'nobodys'"):
        open_decoder(fake, protocol="acme", typeMap="nobodys")


def test_the_option_max_message_bytes_is_for_every_format() -> None:
    decoder = open_decoder(Fake("acme", lambda message: [Heartbeat()]), maxMessageBytes="10")
    assert decoder.decode(Message(None, b"acme567890")) == [Heartbeat()]
    (reason,) = reasons(decoder.decode(Message(None, b"acme5678901")))
    assert reason == "the message has 11 bytes, more than 10; raise maxMessageBytes if it is real"


# Errors


def raising(error: Exception) -> Callable[[Message], Iterable[Any]]:
    def decode(message: Message) -> Iterable[Any]:
        raise error

    return decode


def raising_later(error: Exception) -> Callable[[Message], Iterable[Any]]:
    def decode(message: Message) -> Iterable[Any]:
        yield Heartbeat()
        raise error

    return decode


POSITION: dict[str, Any] = {"topic": "t", "partition": 0, "offset": 7, "path": "f"}


@pytest.mark.parametrize(
    "error",
    [
        KeyError("after"),
        RecursionError("deep"),
        AssertionError(),
        MemoryError(),
        StopIteration(),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("when", [raising, raising_later])
def test_any_exception_of_a_decoder_is_a_corrupt_message(
    error: Exception, when: Callable[[Exception], Callable[[Message], Iterable[Any]]]
) -> None:
    decoder = open_decoder(Fake("acme", when(error)), protocol="acme")
    (event,) = decoder.decode(Message(b"k", b"value", **POSITION))
    assert isinstance(event, Corrupt)
    assert event.error.reason.startswith("the decoder failed: ")
    assert type(error).__name__ in event.error.reason or "StopIteration" in repr(error)
    assert str(event.error).startswith("acme topic t, file f, partition 0, offset 7: ")
    assert event.error.sample == "b'value'"
    assert str(pickle.loads(pickle.dumps(event.error))) == str(event.error)


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("no lz4"), MissingDependencyError("lz4 is needed")], ids=repr
)
@pytest.mark.parametrize("when", [raising, raising_later])
def test_missing_library_ends_decoding(
    error: Exception, when: Callable[[Exception], Callable[[Message], Iterable[Any]]]
) -> None:
    decoder = open_decoder(Fake("acme", when(error)), protocol="acme")
    with pytest.raises(ImportError, match="lz4"):
        decoder.decode(Message(b"k", b"value"))


def test_decoder_exceptions_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDCFMT_DEBUG", "1")
    mistaken = open_decoder(Fake("acme", raising(KeyError("after"))), protocol="acme")
    with pytest.raises(KeyError, match="after"):
        mistaken.decode(Message(None, b"value"))
    refusing = open_decoder(Fake("acme", raising(DecodeError("no row"))), protocol="acme")
    assert isinstance(refusing.decode(Message(None, b"value"))[0], Corrupt)


class ForeignError(DecodeError):
    def __init__(self) -> None:
        super().__init__("foreign", field="x")


def test_decode_error_gets_the_position() -> None:
    def decode(message: Message) -> Iterable[Any]:
        if message.value == b"all":
            raise ForeignError
        yield Corrupt(DecodeError("one row", field="data[1]"), 1)
        yield Heartbeat()

    decoder = open_decoder(Fake("acme", decode), protocol="acme")
    one, other = decoder.decode(Message(None, b"one", **POSITION))
    assert isinstance(one, Corrupt)
    assert one.index == 1
    assert str(one.error) == "acme topic t, file f, partition 0, offset 7: data[1]: one row"
    assert other == Heartbeat()
    (event,) = decoder.decode(Message(None, b"all", **POSITION))
    assert isinstance(event, Corrupt)
    assert isinstance(event.error, ForeignError)
    assert str(event.error) == "acme topic t, file f, partition 0, offset 7: x: foreign"


class Subclass(RowChange):
    pass


IMAGE = Image({"id": 1})


@pytest.mark.parametrize(
    "result",
    [
        [None],
        ["text"],
        [Heartbeat(), {"op": "insert"}],
        [Message(None, None)],
        [Corrupt(ValueError("x"))],  # type: ignore[arg-type]
        [Subclass("insert", ORDERS, None, None)],
        [RowChange("D", ORDERS, None, None)],  # type: ignore[arg-type]
        [RowChange("insert", "shop.orders", None, IMAGE)],  # type: ignore[arg-type]
        [RowChange("insert", ORDERS, None, {"id": 1})],  # type: ignore[arg-type]
        [RowChange("insert", ORDERS, None, None)],
        [RowChange("delete", ORDERS, None, IMAGE)],
        [Heartbeat(index="0")],  # type: ignore[arg-type]
        None,
        5,
    ],
    ids=lambda result: type(result[0]).__name__ if isinstance(result, list) else repr(result),
)
@pytest.mark.parametrize("event_filter", [EventFilter(), EventFilter(table=("shop", "orders"))])
def test_decoders_must_return_events(result: Any, event_filter: EventFilter) -> None:
    fake = Fake("acme", lambda message: result)
    decoder = open_decoder(fake, protocol="acme", event_filter=event_filter)
    (reason,) = reasons(decoder.decode(Message(None, b"x")))
    assert reason.startswith("the decoder failed: ")


@pytest.mark.parametrize(
    "times",
    [
        {"source_time": 10**18},
        {"source_time": -(10**17)},
        {"emit_time": 1.5},
        {"emit_time": True},
        {"commit_ts": -1},
        {"commit_ts": 10**5000},
    ],
    ids=lambda times: next(iter(times)),
)
def test_times_outside_the_range_are_decoder_errors(times: dict[str, Any]) -> None:
    """Arrow's columns of times would end the read."""
    decoder = open_decoder(Fake("acme", lambda message: [Heartbeat(**times)]), protocol="acme")
    (reason,) = reasons(decoder.decode(Message(None, b"x")))
    assert reason.startswith("the decoder failed: ValueError: ")
    assert reason.endswith(f" is not a valid {next(iter(times))}")


# Filters, for decoders that ignore them

ITEMS = TableSchema("shop", "items", ())
PUBLIC = TableSchema("shop", "orders", (), schema="public")
EVENTS: list[Event] = [
    row(),
    row(ITEMS),
    row(PUBLIC),
    row(commit_ts=30),
    SchemaChange(query="q", ddl_type="ALTER", database="shop", table="orders", commit_ts=10),
    SchemaChange(query="q", ddl_type="QUERY", database="shop", commit_ts=10),
    TableSchemaEvent(table_schema=ORDERS, commit_ts=10),
    TableSchemaEvent(table_schema=ITEMS, commit_ts=10),
    Watermark(commit_ts=10),
    Transaction(status="begin", commit_ts=10),
    Heartbeat(commit_ts=10),
    Corrupt(DecodeError("bad")),
]


@pytest.mark.parametrize(
    ("event_filter", "expected"),
    [
        (EventFilter(), list(range(12))),
        (EventFilter(table=("shop", "orders")), [0, 3, 4, 6, 8, 9, 10, 11]),
        (EventFilter(table=("shop", "public", "orders")), [2, 8, 9, 10, 11]),
        (EventFilter(exclude_tables=("*.orders",)), [1, 2, 5, 7, 8, 9, 10, 11]),
        (EventFilter(starting_commit_ts=11), [3, 11]),
        (EventFilter(ending_commit_ts=10), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]),
        (EventFilter(starting_source_time=1), [11]),
        (EventFilter(ending_source_time=1), list(range(12))),
        (EventFilter(kinds=frozenset({"ddl", "corrupt"})), [4, 5, 11]),
        (EventFilter(kinds=frozenset({"row"}), ops=frozenset({"delete"})), []),
    ],
)
def test_filters_are_applied_after_the_decoder(
    event_filter: EventFilter, expected: list[int]
) -> None:
    fake = Fake("acme", lambda message: EVENTS)
    decoder = open_decoder(fake, protocol="acme", event_filter=event_filter)
    found = decoder.decode(Message(None, b"x"))
    positions = [next(i for i, known in enumerate(EVENTS) if event is known) for event in found]
    assert positions == expected


def test_event_without_commit_ts_in_a_range_is_corrupt() -> None:
    fake = Fake("acme", lambda message: [row(), row(commit_ts=None), row(commit_ts=40)])
    decoder = open_decoder(
        fake, protocol="acme", event_filter=EventFilter(starting_commit_ts=5, ending_commit_ts=20)
    )
    good, bad = decoder.decode(Message(None, b"x", offset=3))
    assert isinstance(good, RowChange)
    assert isinstance(bad, Corrupt)
    assert str(bad.error).startswith("acme offset 3: startingCommitTs/endingCommitTs are set")


def test_event_without_a_time_of_the_source_in_a_range_is_corrupt() -> None:
    timed = [attrs.evolve(row(commit_ts=None), source_time=time) for time in (4, 5, 19, 20)]
    bare = TableSchemaEvent(table_schema=ORDERS)
    fake = Fake("acme", lambda message: [*timed, row(commit_ts=None), bare])
    decoder = open_decoder(
        fake,
        protocol="acme",
        event_filter=EventFilter(starting_source_time=5, ending_source_time=20),
    )
    *found, bad, schema = decoder.decode(Message(None, b"x", offset=3))
    assert found == timed[1:3]
    assert isinstance(bad, Corrupt)
    assert str(bad.error).startswith("acme offset 3: startingSourceTime/endingSourceTime are set")
    assert schema is bare


def test_canal_json_by_the_same_filters() -> None:
    values = [canal(), canal(table="items"), canal(type="TIDB_WATERMARK", _tidb={"watermarkTs": 1})]
    decoder = open_decoder(
        canal_too=True, protocol="canal-json", event_filter=EventFilter(table=("shop", "orders"))
    )
    kinds = [type(event) for value in values for event in decoder.decode(Message(None, value))]
    assert kinds == [RowChange, Watermark]
    assert default_registry().get_codec("canal-json").emits == {"row", "ddl", "watermark"}


@pytest.mark.parametrize("protocol", ["auto", "canal-json"])
def test_missing_type_map_is_an_error_on_opening(protocol: str) -> None:
    given = {"protocol": protocol, "typeMap": "oracle"}
    options = validate(given, DECODING_OPTIONS, owner="the test")
    with pytest.raises(
        UnknownFormatError, match="unknown type map 'oracle'; installed: debezium, dts-avro, mysql"
    ):
        MessageDecoder(options, {}, EventFilter())


def test_error_names_a_decoder_that_is_not_callable() -> None:
    with pytest.raises(
        BrokenPluginError, match=r"open_decoder of format 'acme' .* returned None: return the"
    ):
        open_decoder(Fake("acme", None), protocol="acme")  # type: ignore[arg-type]


@pytest.mark.parametrize("type_", [Int, "bigint", None])
def test_a_column_has_a_logical_type(type_: Any) -> None:
    with pytest.raises(TypeError, match=r"column 'id': .* is not a logical type, such as Int"):
        Column("id", "bigint", type_)


def test_a_table_has_names() -> None:
    with pytest.raises(TypeError, match=r"the table None\.'orders': both names are text"):
        TableSchema(None, "orders", ())  # type: ignore[arg-type]
