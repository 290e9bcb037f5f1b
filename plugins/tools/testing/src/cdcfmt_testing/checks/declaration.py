"""Checks of a codec's declaration: names, options, and that it can be pickled."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, get_args

from cdcfmt_core.encoder import Encoder, EncoderContext
from cdcfmt_core.errors import EncodeError, OptionError
from cdcfmt_core.events import KIND_OF, Event, Kind, Message, RowChange
from cdcfmt_core.options import Option
from cdcfmt_testing.checks.encoding import write
from cdcfmt_testing.outcome import check_events, expect
from cdcfmt_testing.subject import Subject


def check_spec(subject: Subject) -> None:
    """Name, summary, address and kinds of events are valid for listings."""
    spec = subject.spec
    for name in (spec.name, *spec.aliases):
        expect(
            re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name),
            f"{name!r} is not a valid format name: use lower-case words with hyphens between them",
        )
    expect(spec.summary and "\n" not in spec.summary, "`summary` is not one line of text")
    expect(re.match(r"https?://\S+$", spec.spec_url), "`spec_url` is not an address")
    strangers = spec.emits - (set(get_args(Kind)) - {"corrupt"})
    expect(spec.emits and not strangers, f"`emits` names {set(strangers)}, which are not kinds")


def check_options(subject: Subject) -> None:
    """Every option is documented, and has a valid name and default."""
    _check_options(subject.spec.options)
    _check_options(subject.spec.encode_options)


def _check_options(own: Iterable[Option]) -> None:
    for option in own:
        name = option.name
        expect(re.fullmatch(r"[a-z][a-zA-Z0-9]*", name), f"option {name!r} is not in camelCase")
        expect_help(option)
        expect((option.type == "choice") == bool(option.choices), f"option {name}: `choices`")
        try:
            parsed = option.parse(option.default)
        except ValueError as error:
            raise AssertionError(f"option {name}: its default is invalid: {error}") from error
        expect(parsed == option.default, f"option {name}: its default becomes {parsed!r}")


def check_option_values(subject: Subject) -> None:
    """Every option's values work, in reading and writing; no undeclared option is used."""
    for option in subject.spec.options:
        for value in values_of(option):
            for sample in subject.samples:
                decoder = subject.open({**sample.case.options, option.name: value})
                events = decoder.decode(sample.message)
                check_events(events, sample.message, subject.spec.name)
    for case in subject.cases:
        used = RecordedOptions(subject.own_options(case.options))
        decode = subject.spec.open_decoder(used, subject.context(case))
        for message in case.messages:
            _exhaust(decode, message)
        _expect_declared(used, subject.spec.options, "decoder")
    if subject.spec.open_encoder is not None:
        _check_writing_options(subject, subject.spec.open_encoder)


def _check_writing_options(
    subject: Subject, open_encoder: Callable[[Mapping[str, Any], EncoderContext], Encoder]
) -> None:
    options = subject.spec.encode_options
    for option in options:
        for value in values_of(option):
            for sample in subject.samples:
                writing = {**(sample.case.writing or {}), option.name: value}
                try:
                    encoder = subject.open_encoder(writing)
                except OptionError:
                    # Options may be incompatible; a single one must work.
                    expect(len(writing) > 1 or option.type == "choice", f"{writing} is rejected")
                    continue
                except Exception as error:
                    raise AssertionError(f"writing with {writing} fails: {error!r}") from error
                write(encoder, sample.events)
    used = RecordedOptions({option.name: option.default for option in options})
    own = open_encoder(used, subject.open_encoder({}).context)
    for sample in subject.samples:
        for event in sample.events:
            with suppress(EncodeError):
                if _takes(own, event):
                    list(own.encode(event))
    _expect_declared(used, options, "encoder")


def _takes(encoder: Encoder, event: Event) -> bool:
    if encoder.needs_commit_ts and getattr(event, "commit_ts", 0) is None:
        return False
    if isinstance(event, RowChange):
        return event.op in encoder.ops
    return KIND_OF[type(event)] in encoder.kinds


def _expect_declared(used: RecordedOptions, options: Iterable[Option], what: str) -> None:
    more = used.looked_up - {option.name for option in options}
    expect(not more, f"the {what} uses options that it does not declare: {sorted(more)}")


def values_of(option: Option) -> Iterator[str]:
    """Texts of an option's values, as users write them."""
    if option.type == "choice":
        yield from option.choices
    elif option.type == "bool":
        yield from ("true", "false")
    elif option.type in ("int", "bytes"):
        for number in (option.minimum, option.maximum):
            if number is not None:
                yield str(number)
    elif option.type == "timezone":
        yield from ("UTC", "Asia/Shanghai", "-03:30")
    elif option.type == "list":
        yield from ("", "a,b")


class RecordedOptions(dict[str, Any]):
    """Options that record which names are looked up."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.looked_up: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.looked_up.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.looked_up.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.looked_up.add(str(name))
        return super().__contains__(name)


def _exhaust(decode: Any, message: Message) -> None:
    try:
        list(decode(message))
    except ValueError:
        # A case may show a bad message; a DecodeError is a ValueError.
        return


_FUNCTIONS: Final = (
    "open_decoder", "open_encoder", "sniff", "scan_schemas", "scan_statements",
    "explain", "open_layouts",
)  # fmt: skip


def check_pickles(subject: Subject) -> None:
    """Factories, sniff and options can be pickled, which needs functions at module level."""
    spec = subject.spec
    expect_pickles(spec, *_FUNCTIONS, "options", "encode_options")
    for case in subject.cases:
        options = subject.own_options(case.options)
        expect(pickle.loads(pickle.dumps(options)) == options, "options change when pickled")


def expect_pickles(spec: object, *names: str) -> None:
    """Attributes of a spec are equal after they are pickled."""
    for name in names:
        value = getattr(spec, name)
        try:
            copy = pickle.loads(pickle.dumps(value))
        except Exception as error:
            raise AssertionError(
                f"`{name}` cannot be pickled ({error}): make it a module-level function"
            ) from error
        expect(copy == value, f"`{name}` changes when pickled")


def expect_help(option: Option) -> None:
    expect(
        len(option.help.split()) > 2 and option.help.rstrip().endswith("."),
        f"option {option.name} has no `help`; describe its effect in a sentence",
    )
