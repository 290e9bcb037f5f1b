"""Progress of a stream for answers that a single broker cannot give.

The cluster is a script of answers here; ``tests/brokers/test_kafka_stream.py`` has a real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import EARLIEST, OffsetRange
from cdcfmt_core.options import validate
from cdcfmt_toolkit.topics import progress as progress_module
from cdcfmt_toolkit.topics.options import OFFSET_OPTIONS, SUBSCRIBE, TOPIC_OPTIONS
from cdcfmt_toolkit.topics.progress import StreamProgress
from cdcfmt_toolkit.topics.stream_offset import INITIAL, StreamOffset
from cdcfmt_toolkit.topics.topic_client import Topic, TopicClient
from cdcfmt_toolkit.topics.topic_options import TopicOptions


class Cluster(TopicClient):
    """Topic ``t``: each partition's first and last offset, and hidden partitions.

    ``leaderless``: partitions that the brokers list without a leader.
    """

    title = "Script"

    def __init__(self, spans: dict[int, tuple[int, int]], *, gone: bool = False) -> None:
        self.spans = spans
        self.id = "A"
        self.hidden: set[int] = set()
        self.silent: set[int] = set()
        self.leaderless: set[int] = set()
        self.gone = gone
        self.questions = 0

    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        there = frozenset(self.spans.keys() - self.hidden - self.leaderless)
        complete = not self.leaderless
        return {"t": None if self.gone else Topic(self.id, there, complete)}

    def list_offsets(self, wanted: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        self.questions += 1
        return {
            place: self.spans[place[1]][0 if value == EARLIEST else 1]
            for place, value in wanted.items()
            if place[1] not in self.silent
        }

    def all_names(self) -> list[str]:
        return []


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_PAUSE", 0)
    monkeypatch.setattr(TopicClient, "first_contact_seconds", 0.0)


def epochs(offset: dict[str, Any]) -> set[int]:
    """The epochs of the batch that ends here."""
    return {each.epoch for each in StreamOffset.of_json(offset).ranges()}


def follow(cluster: Cluster, **options: str) -> StreamProgress:
    declared = (SUBSCRIBE, *OFFSET_OPTIONS, *TOPIC_OPTIONS)
    values = validate({"subscribe": "t", **options}, declared, owner="the test")
    TopicClient.__init__(cluster, TopicOptions.parse(values, "Script", ["subscribe"]), "nowhere")
    return StreamProgress(cluster)


def spans(offset: dict[str, Any]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = offset["topics"]["t"]
    return found


def again(offset: dict[str, Any]) -> dict[str, Any]:
    """The offset as a checkpoint gives it back."""
    loaded: dict[str, Any] = json.loads(json.dumps(offset))
    return loaded


def test_the_first_offset_pins_the_start() -> None:
    cluster = Cluster({0: (3, 10), 1: (0, 0)})
    first = follow(cluster).advance(INITIAL, None, None)
    assert spans(first) == {"0": [10, 10], "1": [0, 0]}
    # The latest offsets are requested once.
    assert cluster.questions == 2
    first = follow(cluster, startingOffsets="earliest").advance(INITIAL, None, None)
    assert spans(first) == {"0": [3, 10], "1": [0, 0]}
    assert StreamOffset.of_json(again(first)).ranges() == [
        OffsetRange("t", 0, 3, 10), OffsetRange("t", 1, 0, 0)
    ]  # fmt: skip


def test_offset_is_unchanged_without_new_messages() -> None:
    cluster = Cluster({0: (0, 10)})
    first = again(follow(cluster, startingOffsets="earliest").advance(INITIAL, None, None))
    stream = follow(cluster)
    assert stream.advance(first, None, None) is first
    cluster.spans[0] = (0, 12)
    assert spans(stream.advance(first, None, None)) == {"0": [10, 12]}
    assert stream.latest() == {"v": 1, "topics": {"t": {"0": 12}}}


def test_limit_continues_where_it_stopped() -> None:
    cluster = Cluster({0: (0, 30), 1: (0, 10)})
    stream = follow(cluster, startingOffsets="earliest")
    first = stream.advance(INITIAL, 8, None)
    assert spans(first) == {"0": [0, 6], "1": [0, 2]}
    second = stream.advance(again(first), 8, None)
    assert spans(second) == {"0": [6, 12], "1": [2, 4]}
    assert stream.latest() == {"v": 1, "topics": {"t": {"0": 30, "1": 10}}}


def test_partitions_missing_from_an_answer_are_kept() -> None:
    cluster = Cluster({0: (0, 5), 1: (0, 5)})
    stream = follow(cluster, startingOffsets="earliest")
    first = again(stream.advance(INITIAL, None, None))
    cluster.spans = {0: (0, 7), 1: (0, 9)}
    cluster.hidden, cluster.silent = {1}, {1}
    second = again(stream.advance(first, None, None))
    assert spans(second) == {"0": [5, 7], "1": [5, 5]}
    cluster.hidden, cluster.silent = {0, 1}, {0, 1}
    # An empty answer is not an offset.
    assert stream.advance(second, None, None) is second
    cluster.hidden, cluster.silent = set(), set()
    assert spans(stream.advance(second, None, None)) == {"0": [7, 7], "1": [5, 9]}


def test_new_partitions_begin_at_earliest_once_their_offsets_are_known() -> None:
    cluster = Cluster({0: (0, 5)})
    stream = follow(cluster, startingOffsets="latest")
    first = again(stream.advance(INITIAL, None, None))
    cluster.spans[1] = (2, 4)
    cluster.silent = {1}
    assert stream.advance(first, None, None) is first
    cluster.silent = set()
    assert spans(stream.advance(first, None, None)) == {"0": [5, 5], "1": [2, 4]}


def test_available_now_reads_existing_messages_and_ends() -> None:
    cluster = Cluster({0: (0, 10), 1: (0, 2)})
    stream = follow(cluster, startingOffsets="earliest")
    stream.stop_at_latest()
    offset = stream.advance(INITIAL, 4, None)
    cluster.spans = {0: (0, 100), 1: (0, 100), 2: (0, 100)}
    seen = [offset]
    while (following := stream.advance(offset, 4, 50)) is not offset:
        offset = again(following)
        seen.append(offset)
    assert [span[1] for span in spans(offset).values()] == [10, 2]
    assert len(seen) == 3
    # A restart begins with a target of its own.
    stream = follow(cluster)
    stream.stop_at_latest()
    assert spans(stream.advance(offset, None, None)) == {
        "0": [10, 100],
        "1": [2, 100],
        "2": [0, 100],
    }


def test_available_now_does_not_end_without_a_partition() -> None:
    cluster = Cluster({0: (0, 5), 1: (0, 5)})
    first = follow(cluster, startingOffsets="earliest").advance(INITIAL, None, None)
    cluster.silent = {1}
    stream = follow(cluster)
    stream.stop_at_latest()
    with pytest.raises(SourceError, match="reports no offsets of t-1"):
        stream.advance(first, None, None)


def test_available_now_does_not_end_without_a_new_partition() -> None:
    """Nor does a query begin without one: from ``latest``, it would read all of it later."""
    cluster = Cluster({0: (0, 5), 1: (0, 5)})
    first = again(follow(cluster, startingOffsets="earliest").advance(INITIAL, None, None))
    cluster.spans |= {2: (0, 7)}
    cluster.leaderless = {2}
    stream = follow(cluster)
    assert stream.advance(first, None, None) is first
    stream = follow(cluster)
    stream.stop_at_latest()
    with pytest.raises(SourceError, match="some partitions of t have no leader"):
        stream.advance(first, None, None)
    with pytest.raises(SourceError, match="some partitions of t have no leader"):
        follow(cluster).advance(INITIAL, None, None)
    cluster.leaderless, cluster.silent = set(), {2}
    with pytest.raises(SourceError, match="reports no offsets of t-2"):
        stream.advance(first, None, None)
    cluster.silent = set()
    assert spans(stream.advance(first, None, None)) == {"0": [5, 5], "1": [5, 5], "2": [0, 7]}


def test_few_offsets_wait() -> None:
    cluster = Cluster({0: (0, 0)})
    stream = follow(cluster)
    first = stream.advance(INITIAL, None, 10)
    cluster.spans[0] = (0, 9)
    assert stream.advance(first, None, 10) is first
    cluster.spans[0] = (0, 10)
    second = stream.advance(first, None, 10)
    assert spans(second) == {"0": [0, 10]}
    cluster.spans[0] = (0, 11)
    assert stream.advance(second, None, 10) is second
    hasty = follow(cluster, maxTriggerDelay="0s")
    assert spans(hasty.advance(second, None, 10)) == {"0": [10, 11]}
    # The first batch after a restart, as in Spark.
    assert spans(follow(cluster).advance(second, None, 10)) == {"0": [10, 11]}


@pytest.mark.parametrize("fail", [True, False])
def test_an_end_that_moved_backwards(fail: bool) -> None:
    cluster = Cluster({0: (0, 10)})
    stream = follow(cluster, startingOffsets="earliest", failOnDataLoss=str(fail))
    first = again(stream.advance(INITIAL, None, None))
    cluster.spans[0] = (0, 7)
    if fail:
        with pytest.raises(
            SourceError, match=r"moved backwards in t-0 from 10 to 7.*failOnDataLoss"
        ):
            stream.advance(first, None, None)
        return
    second = again(stream.advance(first, None, None))
    assert spans(second) == {"0": [7, 7]}
    # The following offsets repeat.
    assert epochs(first) == {0}
    assert epochs(second) == epochs(again(stream.advance(second, None, None))) == {1}
    cluster.spans[0] = (0, 9)
    assert spans(stream.advance(second, None, None)) == {"0": [7, 9]}


@pytest.mark.parametrize("fail", [True, False])
def test_recreated_topic(fail: bool) -> None:
    cluster = Cluster({0: (0, 10)})
    stream = follow(cluster, startingOffsets="earliest", failOnDataLoss=str(fail))
    first = again(stream.advance(INITIAL, None, None))
    # With more messages than the old topic: offsets alone do not show it.
    cluster.spans, cluster.id = {0: (0, 30)}, "B"
    if fail:
        with pytest.raises(SourceError, match="topic t was deleted and recreated"):
            stream.advance(first, None, None)
        return
    second = again(stream.advance(first, None, None))
    assert spans(second) == {"0": [0, 30]}
    assert stream.advance(second, None, None) is second
    cluster.spans, cluster.id = {0: (0, 5), 1: (0, 5)}, "C"
    third = again(follow(cluster, failOnDataLoss="false").advance(second, None, None))
    assert [epochs(each) for each in (first, second, third)] == [{0}, {1}, {2}]


def test_topic_recreated_during_available_now() -> None:
    cluster = Cluster({0: (0, 10)})
    for fail in (True, False):
        cluster.id = "A"
        stream = follow(cluster, startingOffsets="earliest", failOnDataLoss=str(fail))
        stream.stop_at_latest()
        first = again(stream.advance(INITIAL, 4, None))
        cluster.id = "B"
        if fail:
            with pytest.raises(SourceError, match="topic t was deleted and recreated"):
                stream.advance(first, 4, None)
    second = again(stream.advance(first, 4, None))
    assert spans(second) == {"0": [0, 4]}
    assert spans(stream.advance(second, None, None)) == {"0": [4, 10]}


@pytest.mark.parametrize("fail", [True, False])
def test_deleted_topic(
    fail: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster({0: (0, 10)})
    stream = follow(cluster, startingOffsets="earliest", failOnDataLoss=str(fail))
    first = again(stream.advance(INITIAL, None, None))
    cluster.gone, cluster.silent = True, {0}
    if fail:
        with pytest.raises(
            SourceError, match=r"topic t no longer exists \(if it was deleted on purpose, do not"
        ):
            stream.advance(first, None, None)
    else:
        assert stream.advance(first, None, None) is first
        # Each later trigger: neither pauses nor warnings.
        monkeypatch.setattr(progress_module, "_PAUSE", None)
        assert stream.advance(first, None, None) is first
        assert caplog.text.count("no longer exists") == 1
        # A run over existing messages need not wait for deleted ones.
        stream.stop_at_latest()
        assert stream.advance(first, None, None) is first


def test_topic_that_never_existed() -> None:
    cluster = Cluster({0: (0, 10)}, gone=True)
    before = {"v": 1, "topics": {}, "ids": {}}
    with pytest.raises(SourceError, match="topic t does not exist on nowhere"):
        follow(cluster, failOnDataLoss="false").advance(before, None, None)


def test_starting_offsets_behind_the_end() -> None:
    cluster = Cluster({0: (0, 10)})
    with pytest.raises(SourceError, match="t-0 ends at 10, but startingOffsets is 50"):
        follow(cluster, startingOffsets='{"t": {"0": 50}}').advance(INITIAL, None, None)
    lenient = follow(cluster, startingOffsets='{"t": {"0": 50}}', failOnDataLoss="false")
    assert spans(lenient.advance(INITIAL, None, None)) == {"0": [10, 10]}


def test_deselected_topic_keeps_its_offsets() -> None:
    first = again(follow(Cluster({0: (0, 5)})).advance(INITIAL, None, None))
    old = {**first["topics"], "old": {"0": [3, 4]}}
    stream = follow(Cluster({0: (0, 9)}))
    second = stream.advance({**first, "topics": old}, None, None)
    assert second["topics"] == {"old": {"0": [4, 4]}, "t": {"0": [5, 9]}}
    assert [each for each in StreamOffset.of_json(second).ranges() if each.size] == [
        OffsetRange("t", 0, 5, 9)
    ]


def test_checkpoint_of_another_source_is_rejected() -> None:
    for offset in ({"v": 7, "topics": {}}, {"v": 1, "files": {}}):
        with pytest.raises(SourceError, match=r"is from another source.*new checkpointLocation"):
            follow(Cluster({0: (0, 1)})).advance(offset, None, None)
