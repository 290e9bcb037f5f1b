"""No answer, a wrong login, a missing topic: an error in bounded time that says what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from cdcfmt_core.errors import CdcfmtError, SinkError, SourceError
from cdcfmt_core.offsets import LATEST, OffsetRange
from cdcfmt_core.transport import Check
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.harness import NotOfferedError
from cdcfmt_testing.transports.subject import TransportSubject
from cdcfmt_toolkit.topics.stream_offset import INITIAL


def check_unreachable(subject: TransportSubject) -> None:
    """If nothing answers, every request ends in bounded time, with an error naming an option."""
    topic = subject.filled_topic(1, 2)
    wrong = subject.harness.unreachable()
    for what, call, error in _questions(subject, topic, wrong):
        what = f"{what}, where nothing answers"
        subject.expect_remedy(what, subject.error(what, call, error))


def check_wrong_login(subject: TransportSubject) -> None:
    """A rejected login is an error in bounded time, without the secret."""
    topic = subject.filled_topic(1, 2)
    login = subject.harness.wrong_login()
    for what, call, error in _questions(subject, topic, login.options):
        what = f"{what} with a wrong login"
        text = subject.error(what, call, error)
        subject.expect_remedy(what, text)
        expect(login.secret not in text, f"{what}: the error shows the secret")


def check_unknown_topic(subject: TransportSubject) -> None:
    """A missing topic is an error that names the topic, for reading and for writing."""
    topic = subject.filled_topic(1, 1) + "-is-not-there"
    for what, call, error in _questions(subject, topic):
        if what in ("offsets()", "read()"):
            # Only used for topics of a plan.
            continue
        text = subject.error(f"{what} of a topic that does not exist", call, error)
        expect(topic in text, f"{what}: the error does not name the topic {topic}: {text}")


def check_diagnose(subject: TransportSubject) -> None:
    """``diagnose`` finds no problem with a broker, and says what to do if none answers."""
    good, bad = subject.harness.addresses()
    diagnose = subject.spec.diagnose
    expect(diagnose is not None, "`diagnose` is missing, which `cdcfmt doctor` needs")
    assert diagnose is not None
    with subject.in_time("diagnose()"):
        right, wrong = list(diagnose(good)), list(diagnose(bad))
    for check in (*right, *wrong):
        expect(isinstance(check, Check), f"diagnose() returns {check!r}, expected a Check")
        expect(check.subject and check.text, f"diagnose() returns a check without text: {check}")
    expect(right and all(c.state == "ok" for c in right), f"diagnose({good!r}) finds {right}")
    found = [check for check in wrong if check.state == "bad"]
    expect(found, f"diagnose({bad!r}) finds nothing bad: {wrong}")
    expect(all(check.remedy for check in found), f"a bad check has no remedy: {found}")


_Question = tuple[str, Callable[[], object], type[CdcfmtError]]


def _questions(
    subject: TransportSubject, topic: str, more: Mapping[str, str] = {}
) -> list[_Question]:
    """All requests to a broker that the transport supports."""
    found: list[_Question] = []
    with suppress(NotOfferedError):
        source = subject.source(topic, more)
        some = OffsetRange(topic, 0, 0, 1)
        found += [
            ("plan()", source.plan, SourceError),
            ("offsets()", lambda: source.offsets({(topic, 0): LATEST}), SourceError),
            ("read()", lambda: list(source.read(some)), SourceError),
            (
                "advance()",
                lambda: source.open_progress().advance(dict(INITIAL), None, None),
                SourceError,
            ),
        ]
    with suppress(NotOfferedError):
        found.append(("partitions() of a sink", subject.sink(topic, more).partitions, SinkError))
    return found
