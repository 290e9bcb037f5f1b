"""Checks of a transport's declaration: names, options, and that it can be pickled."""

from __future__ import annotations

import pickle
import re
from typing import Any

from cdcfmt_core.decoding import DECODING_OPTIONS
from cdcfmt_core.encoding import ENCODING_OPTIONS
from cdcfmt_core.options import Option
from cdcfmt_testing.checks.declaration import RecordedOptions, expect_help, expect_pickles
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.subject import TransportSubject
from cdcfmt_toolkit.topics.options import TOPIC_OPTIONS
from cdcfmt_toolkit.transport_opening import split_options


def check_spec(subject: TransportSubject) -> None:
    """Title and summary are valid for listings, and options can choose the transport."""
    spec = subject.spec
    for name in ("title", "summary"):
        text = getattr(spec, name)
        expect(text and text == text.strip() and "\n" not in text, f"`{name}` is not one line")
    own = [option.name for option in (*spec.options, *spec.sink_options)]
    chosen = spec.chosen_by or any(name.startswith(spec.prefix) for name in own)
    expect(chosen, "no option chooses the transport: set `chosen_by`, or use its prefix")


def check_options(subject: TransportSubject) -> None:
    """Every option is documented and has a unique name; no undeclared option is used."""
    spec = subject.spec
    if spec.open_source is not None:
        lacking = [option.name for option in TOPIC_OPTIONS if option not in spec.options]
        expect(not lacking, f"`options` lack common options of topics: {lacking} (TOPIC_OPTIONS)")
        _check_options(subject, spec.options, DECODING_OPTIONS)
    if spec.open_sink is not None:
        _check_options(subject, spec.sink_options, ENCODING_OPTIONS)
    topic = subject.harness.create_topic(1)
    for writing, given, open_end in (
        (False, subject.harness.reading, spec.open_source),
        (True, subject.harness.writing, spec.open_sink),
    ):
        if open_end is not None:
            values, settings = split_options(spec, given(topic), writing=writing)
            used = RecordedOptions(values)
            open_end(used, settings)
            more = used.looked_up - values.keys()
            expect(not more, f"options are used but not declared: {sorted(more)}")


def _check_options(
    subject: TransportSubject, own: tuple[Option, ...], others: tuple[Option, ...]
) -> None:
    prefix = subject.spec.prefix
    known = {option.name.lower() for option in others}
    for option in own:
        name = option.name
        expect(
            name == f"{prefix}*" or re.fullmatch(r"[a-z][a-zA-Z0-9.-]*", name),
            f"option {name!r} is neither in camelCase nor {prefix}*",
        )
        expect(name.lower() not in known, f"option {name} is also an option of every format")
        expect_help(option)
        if name == f"{prefix}*":
            expect(option.hidden, f"option {name} may hold logins: it must be `hidden`")


def check_pickles(subject: TransportSubject) -> None:
    """The functions of the spec, and sources and sinks, can be pickled."""
    expect_pickles(
        subject.spec, "open_source", "open_sink", "options_of_url", "diagnose", "options"
    )
    topic = subject.filled_topic(1, 5)
    if subject.spec.open_sink is not None:
        _pickled("the sink", subject.sink(topic))
    source = subject.source(topic)
    _pickled("the source", source)
    # As on a driver: connections that are already open must not be pickled.
    whole = subject.whole(source)
    subject.read(source, whole)
    source.open_progress()
    copy = _pickled("a source that was used", source)
    subject.expect_same(subject.numbered(5), subject.read(copy, whole), "a pickled source")


def _pickled(what: str, value: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(value))
    except Exception as error:
        raise AssertionError(f"{what} cannot be pickled: {error!r}") from error


def check_secrets(subject: TransportSubject) -> None:
    """No text of a source or a sink shows a secret; a login works, also after pickling."""
    login = subject.harness.login()
    topic = subject.filled_topic(1, 5)
    source = subject.source(topic, login.options)
    ends: list[Any] = [source, source.lenient(), source.begin_at(0, 0)]
    if subject.spec.open_sink is not None:
        ends.append(subject.sink(topic, login.options))
    for end in ends:
        for one in (end, pickle.loads(pickle.dumps(end))):
            for text in (repr(one), str(one), f"{one}", repr([one]), repr({"source": one})):
                expect(
                    login.secret not in text,
                    f"a text of {type(end).__name__} shows the secret (repr=False hides a field)",
                )
    copy = pickle.loads(pickle.dumps(source))
    for one in (source, copy):
        subject.expect_same(subject.numbered(5), subject.read_all(one), "a source with a login")
