"""``sniff`` recognises the format's own messages, and no others."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import as_file, files

from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import Message
from cdcfmt_core.recognition import CERTAIN_ENOUGH
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_testing.cases import Case, read_messages
from cdcfmt_testing.damage import PARTS, patches, with_part
from cdcfmt_testing.limits import time_limit
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.subject import Subject


def sample_messages() -> dict[str, list[Message]]:
    """A few real messages of each first-party format, by format name."""
    samples: dict[str, list[Message]] = {}
    for entry in files("cdcfmt_testing").joinpath("samples").iterdir():
        if entry.name.endswith(".jsonl"):
            with as_file(entry) as path:
                samples[entry.name.removesuffix(".jsonl")] = read_messages(path)
    return samples


def check_own(subject: Subject) -> None:
    """Every message with a value is recognised on its own.

    Except in cases whose options change all bytes, such as compression.
    """
    looked_at = 0
    schemas = _Schemas(subject)
    for case, message in subject.messages:
        if message.value and not _is_opaque(case.options):
            looked_at += 1
            sure = _ask(subject.spec, message, schemas.of(case, message))
            expect(
                sure >= CERTAIN_ENOUGH,
                f"sniff is {sure} sure of its own message, less than {CERTAIN_ENOUGH} "
                f"(case {case.name}): {message!r:.300}",
            )
    expect(looked_at, "no case has messages that can be recognised")


def _is_opaque(options: Iterable[str]) -> bool:
    return any("compression" in name.lower() for name in options)


def check_others(subject: Subject) -> None:
    """Neither messages of other formats nor bytes of no format are recognised."""
    names = {subject.spec.name, *subject.spec.aliases}
    for name, messages in sample_messages().items():
        if name not in names:
            for message in messages:
                _refuse(subject.spec, message, f"a message of {name}")
    for message in _strangers():
        _refuse(subject.spec, message, "no message of any format")


def _refuse(spec: CodecSpec, message: Message, what: str) -> None:
    sure = _ask(spec, message)
    expect(sure < CERTAIN_ENOUGH, f"sniff is {sure} sure of {what}: {message!r:.300}")


def check_left_alone(subject: Subject) -> None:
    """No other installed format is as sure of this format's messages as the format itself."""
    schemas = _Schemas(subject)
    for name, other in default_registry().codecs().items():
        if name == subject.spec.name:
            continue
        for case, message in subject.messages:
            if message.value and not _is_opaque(case.options):
                schema = schemas.of(case, message)
                sure, own = (_ask(spec, message, schema) for spec in (other, subject.spec))
                expect(
                    sure < max(own, CERTAIN_ENOUGH),
                    f"{name} is {sure} sure of this format's message, the format itself {own} "
                    f"(case {case.name}): {message!r:.300}",
                )


def check_any(subject: Subject) -> None:
    """``sniff`` returns a number from 0 to 1 for any bytes, and quickly."""
    for sample in subject.samples:
        message = sample.message
        for part in PARTS:
            for damaged in patches(getattr(message, part) or b"", 200):
                _ask(subject.spec, with_part(message, part, damaged))
    for size in (1 << 20, 8 << 20):
        for filling in (b"\0", b"[", b'{"a":', b"\xff", b" "):
            with time_limit(f"sniff of {size} bytes"):
                _ask(subject.spec, Message(filling, filling * (size // len(filling))))


def _strangers() -> Iterator[Message]:
    dice = random.Random(0)
    values = [
        None, b"", b"\0", b"{}", b"[]", b"null", b"1", b'"text"', b"text", b"a,b,c", b"\xff" * 40,
        bytes(64), b'{"id":1,"data":"x","type":"order"}', b'{"ts":1,"level":"info","message":"y"}',
        b"<xml/>", b"\x00\x00\x00\x00\x01\x02", *(dice.randbytes(n) for n in range(1, 200)),
    ]  # fmt: skip
    for value in values:
        yield Message(None, value)
        yield Message(b"key", value)


class _Schemas:
    """The writer schemas of framed messages."""

    def __init__(self, subject: Subject) -> None:
        self._open = cache(lambda options: subject.open(dict(options)))

    def of(self, case: Case, message: Message) -> WriterSchema | None:
        decoder: MessageDecoder = self._open(tuple(case.options.items()))
        return None if (framed := decoder.split(message)) is None else framed.schema


def _ask(spec: CodecSpec, message: Message, schema: WriterSchema | None = None) -> float:
    try:
        if schema is None:
            sure = spec.sniff(message)
        else:
            sure = 0.0 if spec.sniff_schema is None else spec.sniff_schema(schema)
    except Exception as error:
        raise AssertionError(f"sniff raises {error!r} for {message!r:.300}") from error
    expect(
        isinstance(sure, (int, float)) and 0 <= sure <= 1,
        f"sniff returned {sure!r}, which is not from 0.0 to 1.0",
    )
    return sure
