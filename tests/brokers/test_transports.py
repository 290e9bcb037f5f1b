"""Bridge and command line use transports through the registry and two protocols."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import attrs
import pytest
from support.cli_tools import run
from support.kafka_orders import orders

from cdcfmt_core import Message, Option, Registry, TransportSpec, default_registry, hookimpl
from cdcfmt_core.errors import OptionError, UnknownFormatError
from cdcfmt_core.offsets import OffsetRange, Offsets, TopicPartition
from cdcfmt_toolkit.topics.options import TOPIC_OPTIONS
from cdcfmt_toolkit.transport_opening import choose_transport
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.write_options import parse_write_options

COUNT, PARTITIONS = 30, 3


@attrs.frozen
class Memory:
    """A source that generates its messages: the minimum for a batch."""

    topic: str

    def check_batch(self) -> None: ...

    def check_stream(self) -> None:
        raise OptionError("option queue: it is not read in streams")

    def check_whole_topics(self) -> None: ...

    def plan(self) -> list[OffsetRange]:
        return [OffsetRange(self.topic, n, 0, COUNT // PARTITIONS) for n in range(PARTITIONS)]

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return {place: COUNT // PARTITIONS if at == -1 else 0 for place, at in wanted.items()}

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        mine = (m for m in orders(0, COUNT, PARTITIONS) if m.partition == wanted.partition)
        for offset, message in enumerate(mine):
            if wanted.start <= offset < wanted.end:
                yield attrs.evolve(message, topic=self.topic, offset=offset)

    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        for each in ranges:
            yield from self.read(attrs.evolve(each, end=each.start + 1))

    def open_progress(self) -> Any:
        raise NotImplementedError

    def lenient(self) -> Memory:
        return self

    def begin_at(self, partition: int, offset: int) -> Memory:
        return self


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> Memory:
    return Memory(values["queue"] or settings["name"])


def options_of_url(url: str) -> dict[str, str]:
    return {"queue": url.partition("://")[2]}


class Plugin:
    """A plugin with one transport."""

    def __init__(self, name: str, more: Mapping[str, Any] = {}) -> None:
        self.name = name
        self.more = more

    @hookimpl
    def cdcfmt_register_transports(self) -> list[TransportSpec]:
        given: dict[str, Any] = {
            "options": (Option("queue", "What to read."), *TOPIC_OPTIONS),
            "sink_options": (Option("exchange", "Where to write."),),
            "chosen_by": ("queue", "exchange"),
            "open_source": open_source,
            "options_of_url": options_of_url,
            **self.more,
        }
        title = self.name.title()
        spec = TransportSpec(
            self.name, title, "", abilities=frozenset({"keys"}), api_version=1, **given
        )
        return [spec]


@pytest.fixture
def registry() -> Registry:
    """An environment with canal-json and a third party's transport."""
    result = Registry(metadata.entry_points(group="cdcfmt", name="canal-json"))
    result.register(Plugin("memory"), "memory")
    return result


@pytest.mark.parametrize("given", [{"queue": "q"}, {"Memory.Name": "q"}])
def test_a_batch_is_read_by_the_protocol_alone(registry: Registry, given: dict[str, str]) -> None:
    options = parse_options({**given, "maxRecordsPerPartition": "6"}, registry)
    source = pickle.loads(pickle.dumps(options)).require_input()
    assert (source.source, options.transport) == (Memory("q"), "Memory")
    slices = source.divide(source.plan())
    assert len(slices) == 6
    places = [(m.topic, m.partition, m.offset) for m in source.read_all(slices)]
    assert places == [("q", n, at) for n in range(PARTITIONS) for at in range(COUNT // PARTITIONS)]


def test_options_must_select_one_transport(registry: Registry) -> None:
    def problem(given: dict[str, str]) -> str:
        with pytest.raises(OptionError) as caught:
            parse_options(given, registry).require_input()
        return str(caught.value)

    assert "both a path and options of Memory: read each" in problem({"queue": "q", "path": "x"})
    assert "maxOffsetsPerTrigger is for topics, and none" in problem(
        {"path": "x", "maxOffsetsPerTrigger": "5"}
    )
    assert "did you mean queue" in problem({"memory.name": "q", "queu": "q"})
    registry.register(Plugin("other"), "other")
    text = problem({"queue": "q"})
    assert text.startswith("options of several transports: Memory and Other; choose one with")
    assert "Memory and Other" in problem({"memory.name": "a", "other.name": "b"})
    # Its prefix selects the transport.
    assert parse_options({"queue": "q", "other.name": "b"}, registry).transport == "Other"


def test_unsupported_abilities_of_a_transport(registry: Registry) -> None:
    writing = {"protocol": "canal-json", "exchange": "x"}
    with pytest.raises(OptionError, match="Memory is read-only"):
        parse_write_options(writing, registry)
    registry.register(Plugin("memory", {"open_source": None, "open_drain": open_source}), "memory")
    with pytest.raises(OptionError, match="Memory delivers each message only once, so it"):
        parse_options({"queue": "q"}, registry)
    written = {"open_source": None, "open_sink": open_source}
    registry.register(Plugin("memory", written), "memory")
    with pytest.raises(OptionError, match="Memory can only be written"):
        parse_options({"queue": "q"}, registry)


def test_option_that_does_not_select_a_transport(registry: Registry) -> None:
    registry.register(Plugin("memory", {"chosen_by": ()}), "memory")
    with pytest.raises(
        OptionError, match=r"option queue is for Memory; set .*memory\.… to choose it"
    ):
        choose_transport(["queue"], registry)


def test_kafka_not_installed(registry: Registry) -> None:
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
    for parse in (parse_options, parse_write_options):
        with pytest.raises(UnknownFormatError) as caught:
            parse({"protocol": "canal-json", **given}, registry)
        assert str(caught.value) == (
            "unknown transport 'kafka'; installed: memory. Install it, on driver and executors: "
            "pip install cdcfmt-kafka"
        )


def test_commands_without_kafka(monkeypatch: pytest.MonkeyPatch, registry: Registry) -> None:
    for module in ("inputs", "commands.doctor"):
        monkeypatch.setattr(f"cdcfmt_cli.{module}.default_registry", lambda: registry)
    for arguments in (["cat", "kafka://x:1/t"], ["doctor", "--kafka", "x:1"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "pip install cdcfmt-kafka" in result.stderr


def test_a_command_reads_a_transport_by_its_address(
    monkeypatch: pytest.MonkeyPatch, registry: Registry
) -> None:
    monkeypatch.setattr("cdcfmt_cli.inputs.default_registry", lambda: registry)
    result = run("stats", "memory://q", "--protocol", "canal-json")
    assert result.exit_code == 0, result.stderr
    assert str(COUNT) in result.stdout


def test_kafka_is_registered() -> None:
    spec = default_registry().get_transport("kafka")
    assert spec.prefix == "kafka."
    assert default_registry().transport_of("kafka.bootstrap.servers") is spec
    chosen = choose_transport(["subscribepattern"], default_registry())
    assert chosen is spec
    assert choose_transport(["topic"], default_registry(), writing=True) is spec
    assert choose_transport(["topic"], default_registry()) is None
