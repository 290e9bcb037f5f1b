"""The conformance tests, as a base class for a transport's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from cdcfmt_core.registry import default_registry
from cdcfmt_core.testing.known_failures import KnownFailures
from cdcfmt_core.testing.transports.checks import (
    declaration,
    loss,
    messages,
    ranges,
    streams,
    trouble,
    writing,
)
from cdcfmt_core.testing.transports.harness import Harness, NotOfferedError
from cdcfmt_core.testing.transports.samples import SAMPLES
from cdcfmt_core.testing.transports.subject import TransportSubject
from cdcfmt_core.transport import TransportSpec


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

    def test_the_transport_says_what_it_is(self, harness: Harness) -> None:
        self.check(harness, declaration.check_spec)

    def test_options_are_documented(self, harness: Harness) -> None:
        self.check(harness, declaration.check_options)

    def test_sources_and_sinks_are_pickled(self, harness: Harness) -> None:
        self.check(harness, declaration.check_pickles)

    def test_secrets_are_hidden(self, harness: Harness) -> None:
        self.check(harness, declaration.check_secrets)

    def test_messages_are_whole(self, harness: Harness, sample: str) -> None:
        self.check(harness, messages.check_sample, sample)

    def test_every_message_once(self, harness: Harness) -> None:
        self.check(harness, messages.check_once)

    def test_empty_topics(self, harness: Harness) -> None:
        self.check(harness, messages.check_empty)

    def test_times(self, harness: Harness) -> None:
        self.check(harness, messages.check_times)

    def test_a_range_is_read_again(self, harness: Harness) -> None:
        self.check(harness, ranges.check_again)

    def test_ranges_meet(self, harness: Harness) -> None:
        self.check(harness, ranges.check_meeting)

    def test_offsets_without_messages(self, harness: Harness) -> None:
        self.check(harness, ranges.check_gaps)

    def test_readers_do_not_disturb_each_other(self, harness: Harness) -> None:
        self.check(harness, ranges.check_left_early)

    def test_offsets(self, harness: Harness) -> None:
        self.check(harness, ranges.check_offsets)

    def test_ends(self, harness: Harness) -> None:
        self.check(harness, ranges.check_ends)

    def test_begin_at(self, harness: Harness) -> None:
        self.check(harness, ranges.check_begin_at)

    def test_a_stream(self, harness: Harness) -> None:
        self.check(harness, streams.check_stream)

    def test_the_end_of_a_stream(self, harness: Harness) -> None:
        self.check(harness, streams.check_end)

    def test_available_now(self, harness: Harness) -> None:
        self.check(harness, streams.check_available_now)

    def test_the_minimum_of_a_batch(self, harness: Harness) -> None:
        self.check(harness, streams.check_least)

    def test_new_partitions(self, harness: Harness) -> None:
        self.check(harness, streams.check_new_partitions)

    def test_lost_messages_are_an_error(self, harness: Harness) -> None:
        self.check(harness, loss.check_lost)

    def test_lost_messages_are_counted(self, harness: Harness) -> None:
        self.check(harness, loss.check_lost_allowed)

    def test_a_range_behind_the_end(self, harness: Harness) -> None:
        self.check(harness, loss.check_behind_the_end)

    def test_a_deleted_topic(self, harness: Harness) -> None:
        self.check(harness, loss.check_deleted)

    def test_a_recreated_topic(self, harness: Harness) -> None:
        self.check(harness, loss.check_remade)

    def test_a_recreated_and_filled_topic(self, harness: Harness) -> None:
        self.check(harness, loss.check_remade_and_filled)

    # After the tests of loss: some brokers delete nothing in the first minute after a start.
    def test_the_broker_restarts(self, harness: Harness) -> None:
        self.check(harness, streams.check_restart)

    def test_nothing_answers(self, harness: Harness) -> None:
        self.check(harness, trouble.check_unreachable)

    def test_a_wrong_login(self, harness: Harness) -> None:
        self.check(harness, trouble.check_wrong_login)

    def test_an_unknown_topic(self, harness: Harness) -> None:
        self.check(harness, trouble.check_unknown_topic)

    def test_the_doctor(self, harness: Harness) -> None:
        self.check(harness, trouble.check_explain)

    def test_what_is_written_comes_back(self, harness: Harness) -> None:
        self.check(harness, writing.check_written)

    def test_messages_are_written_whole(self, harness: Harness, sample: str) -> None:
        self.check(harness, writing.check_sample, sample)

    def test_without_a_partition(self, harness: Harness) -> None:
        self.check(harness, writing.check_unplaced)

    def test_flushed_messages_are_there(self, harness: Harness) -> None:
        self.check(harness, writing.check_flush)

    def test_a_block_that_fails(self, harness: Harness) -> None:
        self.check(harness, writing.check_failed_block)
