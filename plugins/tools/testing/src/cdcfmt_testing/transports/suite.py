"""The conformance tests, as a base class for a transport's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from cdcfmt_core.registry import default_registry
from cdcfmt_core.transport import TransportSpec
from cdcfmt_testing.suite import KnownFailures
from cdcfmt_testing.transports.checks import (
    connecting,
    declaration,
    loss,
    reading,
    streams,
    writing,
)
from cdcfmt_testing.transports.harness import Harness, NotOfferedError
from cdcfmt_testing.transports.subject import SAMPLES, TransportSubject


def _test(check: Callable[[TransportSubject], None]) -> Callable[[TransportTests, Harness], None]:
    """The test that runs a check."""

    def test(self: TransportTests, harness: Harness) -> None:
        self.check(harness, check)

    test.__doc__ = check.__doc__
    return test


class TransportTests(KnownFailures):
    """The tests of every transport; docs/conformance-kit.md describes each of them.

    ``transport`` is its name.  A subclass overrides the fixture ``harness``, which returns a
    :class:`Harness`.  A test with a sample is named ``test_messages_are_whole[no key]``.
    """

    transport: ClassVar[str]

    @classmethod
    def spec(cls) -> TransportSpec:
        """The installed transport."""
        return default_registry().get_transport(cls.transport)

    @pytest.fixture
    def harness(self) -> Harness:
        """The broker under test; a subclass returns its own."""
        raise NotImplementedError("the fixture `harness` is missing")

    def check(self, harness: Harness, check: Callable[..., None], *more: Any) -> None:
        """Run a check; skip it if the transport or the harness lacks something that it needs.

        :raises AssertionError: if the check fails, or raises any other error.
        """
        try:
            check(TransportSubject(self.spec(), harness), *more)
        except NotOfferedError as reason:
            pytest.skip(str(reason))
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"an unexpected error: {error!r}") from error

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "sample" in metafunc.fixturenames:
            metafunc.parametrize("sample", SAMPLES)

    def names_of_tests(self) -> set[str]:
        tests = ("test_messages_are_whole", "test_messages_are_written_whole")
        return {f"{test}[{name}]" for test in tests for name in SAMPLES} | super().names_of_tests()

    test_transport_declaration = _test(declaration.check_spec)
    test_options_are_documented = _test(declaration.check_options)
    test_sources_and_sinks_are_pickled = _test(declaration.check_pickles)
    test_secrets_are_hidden = _test(declaration.check_secrets)

    def test_messages_are_whole(self, harness: Harness, sample: str) -> None:
        self.check(harness, reading.check_sample, sample)

    test_every_message_once = _test(reading.check_once)
    test_empty_topics = _test(reading.check_empty)
    test_times = _test(reading.check_times)
    test_a_range_is_read_again = _test(reading.check_again)
    test_ranges_meet = _test(reading.check_meeting)
    test_offsets_without_messages = _test(reading.check_gaps)
    test_readers_do_not_disturb_each_other = _test(reading.check_left_early)
    test_offsets = _test(reading.check_offsets)
    test_ends = _test(reading.check_ends)
    test_begin_at = _test(reading.check_begin_at)
    test_a_stream = _test(streams.check_stream)
    test_the_end_of_a_stream = _test(streams.check_end)
    test_available_now = _test(streams.check_available_now)
    test_the_minimum_of_a_batch = _test(streams.check_least)
    test_new_partitions = _test(streams.check_new_partitions)
    test_lost_messages_are_an_error = _test(loss.check_lost)
    test_lost_messages_are_counted = _test(loss.check_lost_allowed)
    test_a_range_behind_the_end = _test(loss.check_behind_the_end)
    test_a_deleted_topic = _test(loss.check_deleted)
    test_a_recreated_topic = _test(loss.check_remade)
    test_a_recreated_and_filled_topic = _test(loss.check_remade_and_filled)

    # After the tests of loss: some brokers delete nothing in the first minute after a start.
    test_the_broker_restarts = _test(streams.check_restart)
    test_unreachable_broker = _test(connecting.check_unreachable)
    test_a_wrong_login = _test(connecting.check_wrong_login)
    test_an_unknown_topic = _test(connecting.check_unknown_topic)
    test_the_doctor = _test(connecting.check_diagnose)
    test_written_messages_round_trip = _test(writing.check_written)

    def test_messages_are_written_whole(self, harness: Harness, sample: str) -> None:
        self.check(harness, writing.check_sample, sample)

    test_without_a_partition = _test(writing.check_unplaced)
    test_flushed_messages_are_readable = _test(writing.check_flush)
    test_a_block_that_fails = _test(writing.check_failed_block)
