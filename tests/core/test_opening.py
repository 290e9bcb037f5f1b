"""The door for users of Python: decoders and encoders by one call."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdcfmt_core import (
    Column,
    Image,
    Message,
    OptionError,
    RowChange,
    TableSchema,
    open_decoder,
    open_encoder,
)
from cdcfmt_core.types import Int, Text

ORDERS = TableSchema("shop", "orders", (Column("id", "int", Int(32), key=True),), ("id",))
NOTES = TableSchema("shop", "notes", (*ORDERS.columns, Column("text", "text", Text())), ("id",))


def message() -> Message:
    encoder = open_encoder("canal-json", enableTidbExtension=True, sourceTimeZone="UTC")
    row = RowChange("insert", ORDERS, None, Image({"id": 1}), commit_ts=470604868574773248)
    (written,) = encoder.encode(row)
    return written


def test_there_and_back() -> None:
    (event,) = open_decoder("canal-json").decode(message())
    assert isinstance(event, RowChange)
    assert event.after is not None
    assert (event.commit_ts, event.after.values) == (470604868574773248, {"id": 1})


def test_filters_are_options() -> None:
    for options, count in (
        ({"includeTables": "shop.*"}, 1),
        ({"excludeTables": "shop.*"}, 0),
        ({"startingCommitTs": 470604868574773249}, 0),
    ):
        assert len(open_decoder("canal-json", options).decode(message())) == count


def test_a_misspelt_option_names_the_nearest() -> None:
    with pytest.raises(OptionError, match=r"'sourceTimezon'; did you mean sourceTimeZone\?"):
        open_decoder("canal-json", sourceTimezon="UTC")
    with pytest.raises(OptionError, match="did you mean enableTidbExtension"):
        open_encoder("canal-json", enableTidbExtensions=True)


def test_a_folder_of_claim_checks_by_its_option(tmp_path: Path) -> None:
    options = {"claimCheckStorageUri": str(tmp_path / "claims")}
    row = RowChange("insert", NOTES, None, Image({"id": 1, "text": "x" * 4096}), commit_ts=1 << 18)
    encoder = open_encoder(
        "canal-json",
        options,
        enableTidbExtension=True,
        sourceTimeZone="UTC",
        maxMessageBytes=2048,
        largeMessageHandleOption="claim-check",
    )
    (pointer,) = encoder.encode(row)
    assert pointer.value is not None
    assert len(pointer.value) < 2048

    (event,) = open_decoder("canal-json", options).decode(pointer)
    assert isinstance(event, RowChange)
    assert event.after is not None
    assert event.after.values == {"id": 1, "text": "x" * 4096}
