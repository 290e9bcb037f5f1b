"""The messages that each format ships, from the golden ones: ``python -m support.samples``."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping

import orjson
from cloudcanal_messages import DDL_EXAMPLE, DML

from cdcfmt_core.events import Message
from cdcfmt_files.sources.whole_messages import wrap_line
from support.golden_data import load_variant, native_messages
from support.workspace import ROOT


def _of_ticdc(protocol: str, variant: str) -> Iterable[Message]:
    return (each.message for each in load_variant(protocol, variant).messages)


_UPDATE = {"action": "UPDATE"}
"""CloudCanal's example names all three actions."""

SAMPLES: Mapping[str, Callable[[], Iterable[Message]]] = {
    "canal-json": lambda: native_messages("canal/canal_flat"),
    "cloudcanal-json": lambda: [
        Message(None, orjson.dumps(value), offset=at)
        for at, value in enumerate((DML | _UPDATE, DDL_EXAMPLE))
    ],
    "debezium": lambda: native_messages("debezium/schema_default"),
    "dts-avro": lambda: native_messages("dts/dts"),
    "open-protocol": lambda: _of_ticdc("open", "batched"),
    "simple": lambda: _of_ticdc("simple-json", "default"),
}


def main() -> None:
    for name, messages in SAMPLES.items():
        package = f"plugins/formats/{name}/src/cdcfmt_{name.replace('-', '_')}"
        lines = b"".join(wrap_line(message) + b"\n" for message in messages())
        (ROOT / package / "samples.jsonl.gz").write_bytes(gzip.compress(lines, 9, mtime=0))


if __name__ == "__main__":
    main()
