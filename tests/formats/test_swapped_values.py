"""Golden JSON with one value of another kind: events or bad messages, never a decoder's own fault.

A wrong kind that a decoder looks up unchecked, such as an object as a name, raises a TypeError.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from support.golden_data import (
    case_messages,
    load_variant,
    native_messages,
    open_decoder,
    reading_options,
)

from cdcfmt_core.events import Corrupt, Message

Path = tuple[str | int, ...]

OTHERS: tuple[Any, ...] = ({"a": [1]}, [], "x", 1.5, True)
_ENTRIES = 8
"""A list with more entries has one kind of them, such as columns."""

VARIANTS = ("canal-json/content-compatible", "simple-json/default", "debezium/default")
NATIVE = {
    "canal/canal_flat": "canal-json",
    "debezium/schema_default": "debezium",
    "debezium/noschema_default": "debezium",
    "debezium/schema_unwrap_rewrite": "debezium",
}
CASES = ("13_mongodb", "28_schema_history", "31_control", "67_flinkcdc_include_schema")


def messages_of(name: str) -> tuple[list[Message], dict[str, str]]:
    """Golden messages, and the options that read them."""
    if name in VARIANTS:
        variant = load_variant(*name.split("/"))
        return [each.message for each in variant.messages], reading_options(variant)
    if name in NATIVE:
        return [*native_messages(name)], {"protocol": NATIVE[name]}
    if name == "cases":
        return [m for each in CASES for m in case_messages(each)], {"protocol": "debezium"}
    return [*native_messages(f"../{name}/messages")], {"protocol": "debezium"}


def paths(node: Any, at: Path = (), kinds: tuple[object, ...] = ()) -> Iterator[tuple[Path, Any]]:
    """Each value's path, and what makes it another one than those before it."""
    yield at, (tuple("#" if type(part) is int else part for part in at), kinds)
    if type(node) is dict:
        kinds = (*kinds[-3:], str(node.get("type"))[:40])
        for name, value in node.items():
            yield from paths(value, (*at, name), kinds)
    elif type(node) is list:
        for number, value in enumerate(node):
            more = (number,) if len(node) <= _ENTRIES else ()
            yield from paths(value, (*at, number), (*kinds, *more))


def swapped(document: Any, at: Path, value: Any) -> bytes:
    """The document with another value in one place."""
    if at:
        document = copy.deepcopy(document)
        node = document
        for part in at[:-1]:
            node = node[part]
        node[at[-1]] = value
    else:
        document = value
    return json.dumps(document).encode()


def mutants(messages: list[Message]) -> Iterator[tuple[Message, Path, Any]]:
    seen = set()
    for message in messages:
        for part in ("value", "key"):
            try:
                document = json.loads(getattr(message, part) or b"null")
            except ValueError:
                continue
            for at, what in paths(document):
                if (part, what) not in seen:
                    seen.add((part, what))
                    for other in OTHERS:
                        yield (
                            attrs.evolve(message, **{part: swapped(document, at, other)}),
                            at,
                            other,
                        )


LARGE = ("debezium/default", "postgres/schema_default")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *(name for name in (*VARIANTS, *NATIVE) if name not in LARGE),
        *("cases", "postgres/noschema_default"),
        *(pytest.param(name, marks=pytest.mark.thorough) for name in LARGE),
    ],
)
def test_values_of_another_kind(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    messages, options = messages_of(name)
    decoder = open_decoder(**options)
    for message in messages:
        decoder.decode(message)
    faults, bad, tried = [], 0, 0
    for message, at, other in mutants(messages):
        tried += 1
        for event in decoder.decode(message):
            if type(event) is Corrupt:
                bad += 1
                if "the decoder failed" in str(event.error):
                    faults.append((at, other, str(event.error)[:200]))
    assert not faults, faults[:10]
    assert tried > 500
    assert bad > tried // 50
