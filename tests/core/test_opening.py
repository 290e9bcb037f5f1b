"""open_decoder and open_encoder, the interface for users of Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cdcfmt_core import (
    CdcfmtError,
    CodecSpec,
    Column,
    Decode,
    DecoderContext,
    Image,
    Message,
    Option,
    OptionError,
    RowChange,
    TableSchema,
    default_registry,
    hookimpl,
    open_decoder,
    open_encoder,
)
from cdcfmt_core.codec import format_options
from cdcfmt_core.types import Int, Text

ORDERS = TableSchema("shop", "orders", (Column("id", "int", Int(32), key=True),), ("id",))
NOTES = TableSchema("shop", "notes", (*ORDERS.columns, Column("text", "text", Text())), ("id",))


def message() -> Message:
    encoder = open_encoder("canal-json", enableTidbExtension=True, sourceTimeZone="UTC")
    row = RowChange("insert", ORDERS, None, Image({"id": 1}), commit_ts=470604868574773248)
    (written,) = encoder.encode(row)
    return written


def test_round_trip() -> None:
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


def test_error_of_misspelt_option_names_the_nearest() -> None:
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


def opened(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    raise AssertionError("no message is of this format")


def of_format(name: str, option: Option) -> CodecSpec:
    return CodecSpec(
        name,
        "",
        "",
        opened,
        lambda message: 0.0,
        frozenset(),
        (option,),
        type_map="mysql",
        api_version=1,
    )


@pytest.mark.parametrize(
    ("given", "expected"), [({}, ["ms", "ns", 7]), ({"TIMEUNIT": "s"}, ["s", "ns", 7])]
)
def test_option_of_several_formats_is_validated_by_each(
    given: dict[str, str], expected: list[Any]
) -> None:
    """With ``protocol=auto``: the default or a value of another format is invalid for it."""
    specs = [
        of_format("a", Option("timeUnit", "", "choice", default="ms", choices=("ms", "s"))),
        of_format("b", Option("timeUnit", "", "choice", default="ns", choices=("us", "ns"))),
        of_format("c", Option("timeUnit", "", "int", default=7)),
    ]
    values = format_options(specs, given)
    assert [spec.own_options(values)["timeUnit"] for spec in specs] == expected
    with pytest.raises(OptionError, match="timeUnit"):
        format_options(specs, {"timeUnit": "day"})


def test_option_name_shared_with_another_plugin_is_harmless() -> None:
    plugin = ModuleType("other")
    spec = of_format("other", Option("dialect", "", default="of its own"))
    vars(plugin)["cdcfmt_register_codecs"] = hookimpl(lambda: [spec])
    try:
        assert default_registry().register(plugin, "other").error is None
        (event,) = open_decoder("auto").decode(message())
    finally:
        default_registry.cache_clear()
    assert isinstance(event, RowChange)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"endingCommitTs": 4, "startingCommitTs": 5}, "4 is before startingCommitTs, 5"),
        ({"DIALECT": "canal", "dialect": "drs"}, "options DIALECT and dialect are the same"),
        ({"protocol": "debezium"}, "debezium, but the first argument is canal-json"),
        ({"typeMap": ""}, "unknown type map ''"),
        ({"claimCheckStorageUri": ""}, "the path is empty"),
    ],
)
def test_contradictory_or_ineffective_options(given: dict[str, Any], error: str) -> None:
    with pytest.raises(CdcfmtError, match=error):
        open_decoder("canal-json", given)


def test_option_none_means_default() -> None:
    given = {"maxMessageBytes": None, "dialect": None, "includeTables": None}
    assert len(open_decoder("canal-json", given).decode(message())) == 1
