"""The conformance tests, as a base class for a format's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cdcfmt_core.events import Message
from cdcfmt_core.registry import default_registry
from cdcfmt_testing.carries import RoundTrip
from cdcfmt_testing.cases import Case, load_cases
from cdcfmt_testing.checks import (
    declaration,
    encoding,
    golden,
    malformed,
    meaning,
    recognising,
    round_trips,
    state,
    written,
)
from cdcfmt_testing.subject import Subject, json_of_value, with_json_value


class KnownFailures:
    """Tests of a kit, some of which are known to fail.

    ``known_failures``: reasons by test name.  A listed test must fail, else remove the entry.
    """

    known_failures: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture(autouse=True)
    def _expect_known_failures(self, request: pytest.FixtureRequest) -> None:
        for name in (request.node.name, request.node.originalname):
            if name in self.known_failures:
                reason = self.known_failures[name]
                request.applymarker(
                    pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True)
                )

    def names_of_tests(self) -> set[str]:
        """The names of all tests, including parametrized ones."""
        return {name for name in dir(self) if name.startswith("test_")}

    def test_known_failures_name_tests(self) -> None:
        unknown = sorted(self.known_failures.keys() - self.names_of_tests())
        assert not unknown, f"known_failures names {unknown}, which are not tests"


def _test(check: Callable[[Subject], None]) -> Callable[[CodecTests], None]:
    """The test that runs a check."""

    def test(self: CodecTests) -> None:
        check(self.subject())

    test.__doc__ = check.__doc__
    return test


class CodecTests(KnownFailures):
    """The tests of every format; docs/conformance-kit.md describes each of them.

    - ``codec``: the format's name.
    - ``cases``: the folder of its golden cases.
    - ``known_failures``: reasons by test name (``test_golden[case]`` if it has a case).  A listed
      test must fail, else remove the entry.

    For a format that can also be written:

    - ``round_trips``: ways to write events and read them again.
    - ``differences``: places where a case's messages are written differently, each with a reason:
      ``shop.orders: data[].price``, with ``*`` for anything.  Listed places must differ.
    """

    codec: ClassVar[str]
    cases: ClassVar[Path]
    round_trips: ClassVar[Sequence[RoundTrip]] = (RoundTrip(),)
    differences: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        """The cases; override it if they are not in :attr:`cases`."""
        return load_cases(cls.cases)

    @classmethod
    def registry_options(cls) -> Mapping[str, Any]:
        """Options of a schema registry, for every encoder and decoder of the format."""
        return {}

    @staticmethod
    def parse_wire(message: Message) -> Any:
        """The message's content as JSON; ValueError if it is not JSON."""
        return json_of_value(message)

    @staticmethod
    def build_wire(message: Message, wire: Any) -> Message:
        """The message with other content; the reverse of :meth:`parse_wire`."""
        return with_json_value(message, wire)

    @classmethod
    def content_of(cls, message: Message) -> Any:
        """The content, as JSON values, that `differences` refer to; for wires other than JSON."""
        return cls.parse_wire(message)

    @classmethod
    def subject(cls) -> Subject:
        """The format with its cases, created once."""
        if "_subject" not in cls.__dict__:
            cls._subject = Subject(
                default_registry().get_codec(cls.codec),
                cls.load_cases(),
                parse_wire=cls.parse_wire,
                build_wire=cls.build_wire,
                content_of=cls.content_of,
                registry_options=cls.registry_options(),
            )
        return cls._subject

    _subject: ClassVar[Subject]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            cases = self.subject().cases
            metafunc.parametrize("case", cases, ids=[case.name for case in cases])
        if "round_trip" in metafunc.fixturenames:
            trips = self.round_trips
            metafunc.parametrize("round_trip", trips, ids=[trip.name for trip in trips])

    def names_of_tests(self) -> set[str]:
        tests = ("test_golden", "test_written_again")
        names = {f"{test}[{case.name}]" for case in self.subject().cases for test in tests}
        names |= {f"test_round_trip[{trip.name}]" for trip in self.round_trips}
        return names | super().names_of_tests()

    def test_golden(self, case: Case) -> None:
        golden.check_case(self.subject(), case)

    test_every_kind_of_event = _test(golden.check_kinds)

    def test_written_again(self, case: Case) -> None:
        written.check_case(self._written_subject(), case, self.differences)

    def test_listed_differences_exist(self) -> None:
        written.check_differences(self._written_subject(), self.differences)

    def test_round_trip(self, round_trip: RoundTrip) -> None:
        round_trips.check_round_trip(self._written_subject(), round_trip)

    def test_absent_is_not_written_as_null(self) -> None:
        encoding.check_absent(self._written_subject())

    def test_bad_values_are_not_written(self) -> None:
        encoding.check_errors(self._written_subject())

    def test_kernel_equals_reference(self) -> None:
        try:
            golden.check_kernel(self.subject())
        except golden.NotChecked as missing:
            pytest.skip(str(missing))

    def _written_subject(self) -> Subject:
        if not self.subject().writes:
            pytest.skip(f"{self.codec} is read-only: its codec has no open_encoder")
        return self.subject()

    test_codec_declaration = _test(declaration.check_spec)
    test_options_are_documented = _test(declaration.check_options)
    test_every_option_works = _test(declaration.check_option_values)
    test_factories_and_options_are_pickled = _test(declaration.check_pickles)
    test_deterministic = _test(state.check_deterministic)
    test_events_share_no_state = _test(state.check_nothing_is_shared)
    test_absent_is_not_null = _test(meaning.check_absent)
    test_null_is_not_absent = _test(meaning.check_null)
    test_digits_are_kept = _test(meaning.check_digits)
    test_images_are_not_swapped = _test(meaning.check_sides)
    test_no_row_is_left_out = _test(meaning.check_items)
    test_times_have_their_units = _test(meaning.check_times)
    test_rows_name_their_keys = _test(meaning.check_keys)
    test_errors_name_the_field = _test(meaning.check_fields)
    test_own_messages_are_recognised = _test(recognising.check_own)
    test_foreign_messages_are_refused = _test(recognising.check_others)
    test_other_formats_refuse_its_messages = _test(recognising.check_left_alone)
    test_any_message_is_sniffed = _test(recognising.check_any)
    test_cut_off_at_every_byte = _test(malformed.check_cut_off)
    test_every_bit_is_flipped = _test(malformed.check_flipped)
    test_false_lengths = _test(malformed.check_lengths)
    test_bytes_lost_or_inserted = _test(malformed.check_patched)
    test_bad_messages_do_not_affect_others = _test(malformed.check_neighbours)
    test_any_bytes = _test(malformed.check_any_bytes)
    test_tombstones = _test(malformed.check_tombstones)
    test_any_value_in_any_place = _test(malformed.check_wrong_types)
    test_any_json_in_any_place = _test(malformed.check_any_json)
    test_deep_nesting = _test(malformed.check_deep)
    test_huge_values = _test(malformed.check_huge)
