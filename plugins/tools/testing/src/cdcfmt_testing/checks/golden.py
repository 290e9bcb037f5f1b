"""Messages of the real producer are decoded to exactly their events, also by the kernel."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from cdcfmt_core.events import KIND_OF, Corrupt, Event, RowChange
from cdcfmt_testing.cases import Case
from cdcfmt_testing.outcome import check_events, expect
from cdcfmt_testing.sameness import rendered, text_difference
from cdcfmt_testing.subject import Subject

MISSING = (
    "NOT CHECKED: the codec declares open_layouts, and only pyspark-cdcfmt, which is not "
    'installed, can compare them with the decoder: pip install "pyspark-cdcfmt[spark]"'
)


class NotChecked(Exception):
    """A package that the check needs is not installed."""


def check_case(subject: Subject, case: Case) -> None:
    """Each message decodes to the case's events, equal in type and value, and none is corrupt.

    For an expected error, the case has the field and a part of the reason; the rest may differ.
    """
    decoded = subject.decode(case)
    for number, (message, events) in enumerate(zip(case.messages, decoded, strict=True)):
        check_events(events, message, subject.spec.name)
        for event in events:
            if isinstance(event, RowChange):
                _check_complete(event, f"case {case.name}, message {number}")
        if case.events is None:
            for event in events:
                if isinstance(event, Corrupt):
                    raise AssertionError(f"case {case.name}, message {number}: {event.error}")
    if case.events is None:
        return
    for number, (expected, events) in enumerate(zip(case.events, decoded, strict=True)):
        if not _same(expected, events):
            raise AssertionError(
                f"case {case.name}, message {number} is decoded to other events:\n"
                + text_difference(rendered(expected), rendered(events), ("expected", "decoded"))
            )


def _check_complete(event: RowChange, where: str) -> None:
    for image in (event.before, event.after):
        if image is not None and image.complete:
            lost = set(event.table.column_names) - image.values.keys()
            expect(
                not lost,
                f"{where}: an image is complete, and lacks column {min(lost, default='')!r} of its "
                "table: set `complete=False`",
            )


def _same(expected: Sequence[Event], events: Sequence[Event]) -> bool:
    if len(expected) != len(events):
        return False
    for wanted, given in zip(expected, events, strict=True):
        if isinstance(wanted, Corrupt) and isinstance(given, Corrupt):
            if (wanted.index, wanted.error.field) != (given.index, given.error.field):
                return False
            if wanted.error.reason not in given.error.reason:
                return False
        elif rendered([wanted]) != rendered([given]):
            return False
    return True


def check_kinds(subject: Subject) -> None:
    """The cases have every kind of event in the codec's `emits`, and no other."""
    seen = {
        KIND_OF[type(event)]
        for case in subject.cases
        for events in subject.decode(case)
        for event in events
    } - {"corrupt"}
    more = sorted(seen - subject.spec.emits)
    expect(not more, f"the codec emits {', '.join(more)} events, which `emits` does not name")
    missing = sorted(subject.spec.emits - seen)
    expect(not missing, f"no case has {', '.join(missing)} events, which `emits` names")


def check_kernel(subject: Subject) -> None:
    """The kernel, with the layouts of `open_layouts`, gives the same rows as the decoder.

    :raises NotChecked: if pyspark-cdcfmt, pyspark or cdcfmt-kernel is not installed.
    """
    if subject.spec.open_layouts is None:
        return
    try:
        bridge = importlib.import_module("pyspark_cdcfmt.testing")
    except ModuleNotFoundError as error:
        raise NotChecked(f"{MISSING} ({error})") from error
    bridge.check_kernel(subject)
