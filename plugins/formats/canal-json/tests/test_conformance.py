"""The conformance kit on messages of TiCDC and Canal; test_golden.py has their truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import attrs
from support.bare_types import with_bare_types
from support.golden_data import native_messages
from support.golden_encoding import golden_cases

from cdcfmt_core.events import Event, RowChange
from cdcfmt_testing import Carries, Case, CodecTests, RoundTrip

DIGITS = "bare TIME, DATETIME and TIMESTAMP do not tell how many digits to print: six, or none"
WITH_DIGITS = [
    *(f"all_types: *.c_{kind}3" for kind in ("datetime", "timestamp", "time")),
    *(f"all_types: *.c_{kind}6" for kind in ("datetime", "timestamp", "time")),
    "defaults_nobin: *.dtm",
    "defaults_t: *.dtm",
    "pk_time: *.ts",
    "upd_cols: *.e",
]
REPLACED = r"TiCDC wrote \ufffd, which Go escapes only where it stands for a byte"


def normalise(event: Event, decoded: Any) -> Event:
    """Unchanged columns of ``old`` are completed, and key-only deletes are incomplete."""
    if not isinstance(event, RowChange) or event.before is None:
        return event
    before = event.before
    if event.after is not None:
        after = event.after.values
        # Compared as texts, since 0.0 equals -0.0.
        texts = {name: repr(value) for name, value in before.values.items()}
        same = tuple(name for name, value in after.items() if texts[name] == repr(value))
        return attrs.evolve(event, before=attrs.evolve(before, completed=same))
    key_only = len(before.values) <= len(event.table.key_columns)
    return attrs.evolve(event, before=attrs.evolve(before, complete=not key_only))


def of_canal(event: Event, decoded: Any) -> Event:
    """Key-only deletes stay complete."""
    normal = normalise(event, decoded)
    if not isinstance(event, RowChange) or event.op != "delete" or event.before is None:
        return normal
    is_whole = bool(event.before.values)
    return attrs.evolve(event, before=attrs.evolve(event.before, complete=is_whole))


def with_unknown_parameters(event: Event, decoded: Any) -> Event:
    """The same; all of ``old`` was sent, and types are bare."""
    event = normalise(event, decoded)
    if not isinstance(event, RowChange):
        return event
    if event.op == "update" and event.before is not None:
        event = attrs.evolve(event, before=attrs.evolve(event.before, completed=()))
    return with_bare_types(event)


class TestCanalJson(CodecTests):
    codec = "canal-json"
    round_trips = (
        RoundTrip(
            carries=Carries(),
            writing={"enableTidbExtension": True},
            reading={"dialect": "ticdc"},
            normalise=with_unknown_parameters,
        ),
        RoundTrip(
            name="content-compatible",
            carries=Carries(),
            writing={
                "enableTidbExtension": True,
                "contentCompatible": True,
                "onlyOutputUpdatedColumns": True,
            },
            reading={"dialect": "ticdc"},
            normalise=normalise,
        ),
        # Without a commit_ts; ``old`` has only the changed columns, as its types are complete.
        RoundTrip(
            name="of Alibaba Canal",
            carries=Carries(
                kinds=frozenset({"row"}), times=frozenset({"source_time", "emit_time"})
            ),
            writing={"dialect": "canal"},
            reading={"dialect": "canal"},
            normalise=of_canal,
        ),
    )
    differences: ClassVar = {
        **{f"golden.{column}": DIGITS for column in WITH_DIGITS},
        "*: mysqlType (order)": "Go's maps have no order",
        "golden.bad_utf8: value": REPLACED,
        "golden.bad_latin1: value": REPLACED,
    }

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        yield from golden_cases("canal-json")
        # Canal puts many rows into a message; tests/test_golden_encoding.py
        # writes them one by one.
        messages = tuple(native_messages("canal/canal_flat"))[:500]
        yield Case("canal", messages, writing=None)
