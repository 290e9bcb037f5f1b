"""State: none is kept outside of a decoder, and equal messages always give equal events."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Corrupt, Event, TableSchema
from cdcfmt_testing.cases import Case
from cdcfmt_testing.event_json import events_to_json
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.subject import Subject

_MOST: Final = 60
"""Maximum number of messages per case, so that a format takes only seconds."""
_ZONE_OF_MACHINE: Final = "XYZ-11:45"
"""The time zone of the other process, east of UTC: only `sourceTimeZone` may affect results."""
_OTHER_ZONE: Final = {"sourceTimeZone": "-03:30"}
_WRITE_ANYTHING: Final = {"unsupportedEvents": "skip", "synthesizeCommitTs": True}


def check_deterministic(subject: Subject) -> None:
    """A second decoder or encoder, and one in another process, give the same results.

    The other process has another hash seed, which reveals a dependence on the order of sets, and
    another time zone of the machine.  It decodes the cases in reverse, and first with another
    `sourceTimeZone`, which reveals state outside of decoders.
    """
    jobs = list(_jobs(subject.cases))
    here = [_decode(subject, case) for case in jobs]
    for case, text in zip(jobs, here, strict=True):
        expect(
            _decode(subject, case) == text,
            f"case {case.name} gives different events or messages the second time",
        )
    for case, text, there in zip(jobs, here, _decode_elsewhere(subject, jobs), strict=True):
        expect(
            there == text,
            f"case {case.name} gives different events or messages in another process: look for a "
            "set whose order matters, for state outside of the decoder or encoder, and for times "
            "in the machine's time zone, as of `datetime.timestamp()`",
        )


def check_nothing_is_shared(subject: Subject) -> None:
    """Events of two messages or of two decoders share no mutable object.

    Events of one message may, as they are never changed.
    """
    for case in subject.cases:
        owners: dict[int, tuple[Any, str]] = {}
        tables: dict[int, int] = {}
        for number in range(2):
            some = attrs.evolve(case, messages=case.messages[:_MOST], events=None)
            for at, events in enumerate(subject.decode(some)):
                for event in events:
                    place = f"message {at} of case {case.name}"
                    for part in _parts(event):
                        _, owner = owners.get(id(part), (None, ""))
                        mine = f"{place}, by decoder {number + 1}"
                        expect(owner in ("", mine), f"{mine}, and {owner} share {part!r:.300}")
                        # Keep the object, or another one would get its id.
                        owners[id(part)] = part, mine
                    for table in _tables(event):
                        first = tables.setdefault(id(table), number)
                        owners[id(table)] = table, ""
                        expect(first == number, f"{place}: two decoders share a table schema")


def _parts(value: Any) -> Iterator[Any]:
    """Every mutable object in an event, including the event."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _parts(inner)
    elif isinstance(value, (list, tuple)):
        if isinstance(value, list):
            yield value
        for inner in value:
            yield from _parts(inner)
    elif attrs.has(type(value)) and not isinstance(value, TableSchema):
        yield value
        for field in attrs.fields(type(value)):
            yield from _parts(getattr(value, field.name))


def _tables(event: Event) -> Iterator[TableSchema]:
    for name in ("table", "table_schema", "previous_table_schema"):
        table = getattr(event, name, None)
        if isinstance(table, TableSchema):
            yield table


def _jobs(cases: Sequence[Case]) -> Iterator[Case]:
    for case in cases:
        plain = attrs.evolve(case, events=None, messages=case.messages[:_MOST])
        yield plain
        yield attrs.evolve(plain, options={**case.options, **_OTHER_ZONE})


def _decode(subject: Subject, case: Case) -> str:
    """The events of a case as text and, if the format can be written, their messages."""
    decoded = subject.decode(case)
    text = events_to_json(decoded)
    if not subject.writes:
        return text
    encoder = subject.open_encoder({**subject.writing_options(case), **_WRITE_ANYTHING})
    messages: list[Any] = []
    for events in decoded:
        for event in events:
            if not isinstance(event, Corrupt):
                try:
                    messages += encoder.encode(event)
                except EncodeError as error:
                    messages.append(str(error))
    messages += encoder.flush()
    return "\n".join([text, *map(repr, messages)])


def _decode_elsewhere(subject: Subject, jobs: list[Case]) -> list[str]:
    work = pickle.dumps(sys.path) + pickle.dumps((subject.spec, jobs, subject.registry_options))
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import _serve; _serve()"],
        input=work,
        capture_output=True,
        env={
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TZ": _ZONE_OF_MACHINE,
        },
        timeout=300,
        check=False,
    )
    expect(done.returncode == 0, f"the format fails in another process: {done.stderr.decode()}")
    texts: list[str] = pickle.loads(done.stdout)
    return texts


def _serve() -> None:
    """The other process: run all jobs from standard input, the last one first."""
    sys.path[:] = pickle.load(sys.stdin.buffer)
    spec, jobs, registry_options = pickle.load(sys.stdin.buffer)
    subject = Subject(spec, jobs, registry_options=registry_options)
    texts = [_decode(subject, case) for case in reversed(jobs)]
    sys.stdout.buffer.write(pickle.dumps(texts[::-1]))
