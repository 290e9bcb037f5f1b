"""The tables of transports: guarantees, and the formats that vendors send."""

from __future__ import annotations

from typing import Final

import attrs

from cdcfmt_core import TransportSpec, default_registry

HEAD = (
    "transport", "package", "read again", "written", "queues", "keys", "headers", "order",
    "transactions",
)  # fmt: skip


@attrs.frozen
class Sent:
    """A format that a product sends, and over which transports its documents have that."""

    format: str
    product: str
    over: frozenset[str]


_ALL: Final = frozenset({"kafka", "rabbitmq", "rocketmq"})
_KAFKA: Final = frozenset({"kafka"})

SENT: Final = (
    # https://www.clougence.com/cc-doc/reference/kafka_msg_format_type, of targets
    Sent("cloudcanal-json", "CloudCanal", _ALL),
    Sent("canal-json", "CloudCanal", _ALL),
    Sent("debezium", "CloudCanal", _KAFKA),
    Sent("dts-avro", "CloudCanal", _KAFKA),
    # canal.serverMode of Canal's server
    Sent("canal-json", "Alibaba Canal", _ALL),
    # https://docs.pingcap.com/tidb/stable/ticdc-sink-to-kafka
    Sent("canal-json", "TiCDC", _KAFKA),
    Sent("open-protocol", "TiCDC", _KAFKA),
    Sent("debezium", "TiCDC", _KAFKA),
    Sent("simple", "TiCDC", _KAFKA),
    Sent("ticdc-avro", "TiCDC", _KAFKA),
    # The connectors run in Kafka Connect.
    Sent("debezium", "Debezium", _KAFKA),
    Sent("dts-avro", "Aliyun DTS", _KAFKA),
)
"""Of the transports that cdcfmt has or is to have."""


def promises() -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows: the guarantees of each installed transport of a broker."""
    registry = default_registry()
    packages = {name: info.dist for info in registry.plugins() for name in info.transports}
    return HEAD, [
        (
            f"[{spec.title}]({name}.md)",
            f"`{packages[name]}`",
            "yes" if spec.open_source else "no",
            "yes" if spec.open_sink else "no",
            "drained" if spec.open_drain else "none",
            *(_has(spec, ability) for ability in ("keys", "headers")),
            "in each partition" if "ordering" in spec.abilities else "no",
            "committed only" if "transactions" in spec.abilities else "none",
        )
        for name, spec in brokers().items()
    ]


def brokers() -> dict[str, TransportSpec]:
    """The installed transports of brokers, by name."""
    transports = default_registry().transports()
    return {name: spec for name, spec in transports.items() if spec.open_input is None}


def _has(spec: TransportSpec, ability: str) -> str:
    return "yes" if ability in spec.abilities else "no"


def carried(formats: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows: who sends which format over which installed transport.

    ``formats`` is the folder of the formats' pages.
    """
    transports = brokers()
    rows = [
        (
            f"[{name}]({formats}/{name}.md)",
            *(
                ", ".join(s.product for s in SENT if s.format == name and transport in s.over)
                for transport in transports
            ),
        )
        for name in dict.fromkeys(sent.format for sent in SENT)
    ]
    return ("format", *(spec.title for spec in transports.values())), rows
