"""The door for users of Python: decoders and encoders by one call."""

from __future__ import annotations

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
from cdcfmt_core.types import Int

ORDERS = TableSchema("shop", "orders", (Column("id", "int", Int(32), key=True),), ("id",))


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
