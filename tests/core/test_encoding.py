"""The common steps of encoding, with a small format of its own."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from support.installed_plugins import DIALECTS

import cdcfmt_core
from cdcfmt_core import CodecSpec, Encoder, EncoderContext, Option, Registry, hookimpl
from cdcfmt_core.encoding import ENCODING_OPTIONS, MessageEncoder
from cdcfmt_core.errors import (
    BrokenPluginError,
    DecodeError,
    EncodeError,
    OptionError,
    UnsupportedEventError,
)
from cdcfmt_core.events import (
    Column,
    Corrupt,
    Event,
    Heartbeat,
    Image,
    Kind,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
)
from cdcfmt_core.options import validate
from cdcfmt_core.types import Int, Text

TABLE = TableSchema(
    "shop",
    "orders",
    (Column("id", "int", Int(32), key=True), Column("name", "varchar", Text())),
    ("id",),
)


MISTAKES: dict[str, tuple[Any, str]] = {
    "none": (None, "returned None, not a list of Message"),
    "one message": (Message(None, b""), r"returned Message\(.*, not a list of Message"),
    "bytes": (b"x", "returned 120 where a Message belongs"),
    "pairs": ([(None, b"x")], r"returned \(None, b'x'\) where a Message belongs"),
    "text": ([Message(None, "x")], "returned a Message with 'x', not bytes"),  # type: ignore[arg-type]
}
"""Name of a row → the result of its encoder, and the reason of the error."""


class Pairs(Encoder):
    """Two rows a message; ``bad`` in a name cannot be written."""

    kinds = frozenset({"row", "ddl", "watermark"})
    ops = frozenset[Op]({"insert", "update", "delete"})
    needs_commit_ts = True
    per_partition = True
    hints: ClassVar[dict[Kind, str]] = {"heartbeat": "set beats=true"}

    def __init__(self) -> None:
        self._held: list[str] = []

    def encode(self, event: Event) -> Iterable[Message]:
        if isinstance(event, RowChange):
            image = event.after or event.before
            assert image is not None
            if image.values["name"] == "bad":
                raise EncodeError("cannot be written", column="name", sample="bad")
            if image.values["name"] == "unsayable":
                raise UnsupportedEventError("has no words")
            if image.values["name"] == "bug":
                raise KeyError("name")
            if image.values["name"] in MISTAKES:
                return MISTAKES[image.values["name"]][0]
            self._held.append(f"{event.op} {image.values['id']} @{event.commit_ts}")
            return self.flush() if len(self._held) == 2 else ()
        return [Message(None, f"{type(event).__name__} @{event.commit_ts}".encode())]  # type: ignore[union-attr]

    def flush(self) -> Iterable[Message]:
        held, self._held = self._held, []
        return [Message(None, "; ".join(held).encode())] if held else []


def open_pairs(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    if not options["on"]:
        raise OptionError("option on: must be on")
    return Pairs()


class Plugin:
    @hookimpl
    def cdcfmt_register_codecs(self) -> list[CodecSpec]:
        return [
            CodecSpec(
                name=name,
                summary="",
                spec_url="",
                open_decoder=lambda options, context: lambda message: [],
                sniff=lambda message: 0.0,
                emits=frozenset({"row"}),
                type_map="mysql",
                api_version=1,
                open_encoder={"silent": None, "none": lambda *_: None}.get(name, open_pairs),
                encode_options=(Option(name="on", help="", type="bool", default=True),),
                ddl_partitions="first" if name == "first" else "all",
            )
            for name in ("pairs", "first", "silent", "none")
        ]


def open_encoder(
    protocol: str = "pairs",
    *,
    partitions: int | None = None,
    counts: Counter[str] | None = None,
    **options: Any,
) -> MessageEncoder:
    registry = Registry(entry_points=DIALECTS)
    registry.register(Plugin(), "test")
    own = {"on": options.pop("on", True)}
    return MessageEncoder(
        validate({"protocol": protocol} | options, ENCODING_OPTIONS, owner="the test"),
        own,
        partitions=partitions,
        counts=counts,
        registry=registry,
    )


def row(op: Op, id_: int = 1, name: str = "a", **fields: Any) -> RowChange:
    image = Image({"id": id_, "name": name})
    fields = {"commit_ts": 7} | fields
    return RowChange(
        op,
        TABLE,
        image if op == "delete" else fields.pop("before", None),
        None if op == "delete" else image,
        **fields,
    )


def texts(messages: Iterable[Message]) -> list[str]:
    return [(message.value or b"").decode() for message in messages]


def test_batches_are_flushed_before_ddl_and_watermarks() -> None:
    encoder = open_encoder()

    assert texts(encoder.encode(row("insert", 1))) == []
    assert texts(encoder.encode(row("update", 2))) == ["insert 1 @7; update 2 @7"]
    assert texts(encoder.encode(row("delete", 3))) == []
    assert texts(encoder.encode(Watermark(9))) == ["delete 3 @7", "Watermark @9"]
    assert texts(encoder.flush()) == []


def test_a_row_goes_to_the_partition_of_its_key_and_a_watermark_to_all() -> None:
    encoder = open_encoder(partitions=3)
    messages = [
        m for id_ in range(20) for op in ("insert", "delete") for m in _ids(encoder, op, id_)
    ]

    partitions = {text: message.partition for message, text in messages}
    assert len(messages) == 20
    assert all(text == f"insert {n} @7; delete {n} @7" for n, (_, text) in enumerate(messages))
    assert set(partitions.values()) == {0, 1, 2}
    assert [m.partition for m in encoder.encode(Watermark(9))] == [0, 1, 2]


def _ids(encoder: MessageEncoder, op: Any, id_: int) -> list[tuple[Message, str]]:
    return [(message, texts([message])[0]) for message in encoder.encode(row(op, id_))]


@pytest.mark.parametrize(("protocol", "expected"), [("pairs", [0, 1]), ("first", [0])])
def test_partitions_of_ddl_follow_the_format(protocol: str, expected: list[int]) -> None:
    encoder = open_encoder(protocol, partitions=2)
    encoder.encode(row("insert", 1))
    encoder.encode(row("insert", 2))

    messages = encoder.encode(SchemaChange("drop table t", "ERASE", commit_ts=8))

    ddl = [m.partition for m in messages if texts([m]) == ["SchemaChange @8"]]
    assert ddl == expected
    assert messages[-1].value == b"SchemaChange @8"


@pytest.mark.parametrize("same", [("1.5", "1.50", "1.500"), ("10", "10.0", "1E+1"), ("0", "-0.00")])
def test_equal_decimals_are_one_key(same: tuple[str, ...]) -> None:
    encoder = open_encoder(partitions=1_000)
    rows = [row("insert", Decimal(text)) for text in same]  # type: ignore[arg-type]
    messages = [message for each in rows for message in encoder.encode(each)]
    assert len({message.partition for message in [*messages, *encoder.flush()]}) == 1


def test_messages_have_no_partition_without_a_partition_count() -> None:
    encoder = open_encoder()
    (message,) = encoder.encode(Watermark(9))
    assert message.partition is None


def test_partition_options_require_a_partition_count() -> None:
    with pytest.raises(OptionError, match="option partitioner would have no effect"):
        cdcfmt_core.open_encoder("canal-json", partitioner="table")
    cdcfmt_core.open_encoder("canal-json", partitioner="table", partitions=2)


def test_the_other_partitioners() -> None:
    def partitions_of(events: list[RowChange], **options: Any) -> list[int | None]:
        encoder = open_encoder(partitions=5, **options)
        for event in events:
            encoder.encode(event)
        return [message.partition for message in encoder.flush()]

    spread = [row("insert", id_) for id_ in range(9)]
    assert len(partitions_of(spread, partitioner="table")) == 1
    assert len(partitions_of(spread)) > 1
    assert partitions_of([row("insert", commit_ts=8)], partitioner="ts") == [3]
    same_name = partitions_of(spread, partitioner="columns", partitionColumns="name")
    assert len(same_name) == 1
    with pytest.raises(OptionError, match="partitionColumns"):
        open_encoder(partitioner="columns")
    with pytest.raises(OptionError, match="partitionColumns"):
        open_encoder(partitionColumns="name")
    encoder = open_encoder(partitions=5, partitioner="columns", partitionColumns="nme")
    with pytest.raises(EncodeError, match=r"column nme.*\(columns: id, name\)"):
        encoder.encode(row("insert"))


def test_a_missing_commit_ts_is_an_error_that_names_the_option() -> None:
    encoder = open_encoder(synthesizeCommitTs="false")
    with pytest.raises(EncodeError, match="synthesizeCommitTs=true") as caught:
        encoder.encode(row("insert", commit_ts=None, source_time=5_000))
    assert str(caught.value).startswith("pairs table shop.orders: ")


def test_generated_commit_ts_never_decreases() -> None:
    counts: Counter[str] = Counter()
    encoder = open_encoder(counts=counts)
    times = [1_000_500, 1_000_999, 2_000_000, 1_000_000]

    messages = [
        text
        for time in times
        for text in texts(encoder.encode(row("insert", commit_ts=None, source_time=time)))
    ]

    base = 1000 << 18
    assert messages == [
        f"insert 1 @{base}; insert 1 @{base + 1}",
        f"insert 1 @{2000 << 18}; insert 1 @{(2000 << 18) + 1}",
    ]
    assert counts["commit_ts made from source time"] == 4
    with pytest.raises(EncodeError, match="no commit_ts, and no source time"):
        encoder.encode(row("insert", commit_ts=None))


def test_updates_of_the_key_are_split() -> None:
    before = Image({"id": 2, "name": "a"})
    encoder = open_encoder(splitKeyUpdates="true")
    assert texts(encoder.encode(row("update", 3, before=before))) == ["delete 2 @7; insert 3 @7"]
    encoder = open_encoder()
    encoder.encode(row("update", 3, before=before))
    assert texts(encoder.flush()) == ["update 3 @7"]


def test_halves_of_a_split_share_a_commit_ts_and_are_skipped_independently() -> None:
    counts: Counter[str] = Counter()
    encoder = open_encoder(
        splitKeyUpdates="true",
        synthesizeCommitTs="true",
        unsupportedEvents="skip",
        counts=counts,
    )
    before = Image({"id": 2, "name": "a"})
    times = {"commit_ts": None, "source_time": 1_000}
    assert texts(encoder.encode(row("update", 3, before=before, **times))) == [
        f"delete 2 @{1 << 18}; insert 3 @{1 << 18}"
    ]
    assert encoder.encode(row("update", 3, "unsayable", before=before)) == []
    assert texts(encoder.flush()) == ["delete 2 @7"]
    assert counts["skipped: has no words"] == 1


def test_inexpressible_events_fail_or_are_counted() -> None:
    counts: Counter[str] = Counter()
    with pytest.raises(UnsupportedEventError, match="no heartbeat events; set beats=true"):
        open_encoder().encode(Heartbeat())
    with pytest.raises(
        UnsupportedEventError,
        match=r"not support truncate .*=skip leaves it out",
    ):
        open_encoder().encode(RowChange("truncate", TABLE, None, None, commit_ts=1))
    corrupt = Corrupt(DecodeError("not JSON").at(topic="t", offset=5))
    with pytest.raises(UnsupportedEventError, match=r"\(topic t, offset 5: not JSON\); unsupp"):
        open_encoder().encode(corrupt)

    encoder = open_encoder(unsupportedEvents="skip", counts=counts)
    assert encoder.encode(Heartbeat()) == []
    assert encoder.encode(corrupt) == []
    assert sum(counts.values()) == 2


def test_snapshot_rows_become_inserts_and_upserts_follow_the_option() -> None:
    counts: Counter[str] = Counter()
    encoder = open_encoder(counts=counts)
    encoder.encode(row("read"))
    assert texts(encoder.flush()) == ["insert 1 @7"]
    assert counts["snapshot rows written as inserts"] == 1
    with pytest.raises(UnsupportedEventError, match="set upsertAs"):
        encoder.encode(row("upsert"))
    encoder = open_encoder(upsertAs="update")
    encoder.encode(row("upsert"))
    assert texts(encoder.flush()) == ["update 1 @7"]


def test_errors_have_a_position_and_are_picklable() -> None:
    with pytest.raises(EncodeError) as caught:
        open_encoder().encode(row("insert", name="bad"))
    text = (
        "pairs table shop.orders, column name, commit_ts 7: cannot be written; "
        "unsupportedValues=skip leaves it out; got 'bad'"
    )
    assert str(caught.value) == text
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    counts: Counter[str] = Counter()
    encoder = open_encoder(unsupportedValues="skip", counts=counts)
    assert encoder.encode(row("insert", name="bad")) == []
    assert counts == {"skipped: events, for shop.orders.name": 1}
    with pytest.raises(EncodeError, match=r"shop\.orders.*the encoder failed: KeyError"):
        open_encoder().encode(row("insert", name="bug"))


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("partitions", [None, 2])
def test_encoders_must_return_messages(name: str, partitions: int | None) -> None:
    with pytest.raises(EncodeError, match=f"the encoder failed: TypeError: it {MISTAKES[name][1]}"):
        open_encoder(partitions=partitions).encode(row("insert", name=name))


def test_error_names_an_invalid_encoder() -> None:
    with pytest.raises(
        BrokenPluginError, match=r"open_encoder of format 'none' .* returned None: return an"
    ):
        open_encoder("none")


def test_options_are_validated_on_opening() -> None:
    with pytest.raises(OptionError, match="must be on"):
        open_encoder(on=False)
    with pytest.raises(OptionError, match=r"silent cannot be written.*first, none, pairs"):
        open_encoder("silent")
    with pytest.raises(OptionError, match="name the format"):
        open_encoder("")
    with pytest.raises(OptionError, match="needs claimCheckStorageUri"):
        open_encoder(largeMessageHandleOption="claim-check")
    for useless in ({"claimCheckStorageUri": "claims"}, {"claimCheckRawValue": True}):
        with pytest.raises(OptionError, match="set largeMessageHandleOption=claim-check, too"):
            open_encoder(**useless)
