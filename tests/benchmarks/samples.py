"""The messages that are measured: golden ones, and their rows in formats that have none."""

from __future__ import annotations

from pathlib import Path

import attrs
from encode import converted
from run import load

from cdcfmt_core.events import Message

_GOLDEN = Path(__file__).parents[1] / "golden"


@attrs.frozen
class Sample:
    """A file of golden messages.

    ``go`` is TiCDC's own decoder, row changes a second; ``avsc`` the schema of messages in
    Avro.  Where ``written`` there is no file: our encoder makes messages of Simple's rows.
    """

    name: str
    protocol: str
    go: int | None = None
    avsc: Path | None = None
    written: bool = False

    def messages(self) -> list[Message]:
        """Two of DDL, then rows."""
        return converted(self.protocol) if self.written else load(self.name)

    @property
    def lines(self) -> bool:
        """Whether values are lines of a file as they are; else it has whole messages."""
        return self.avsc is None and self.protocol != "open-protocol"


SAMPLES = (
    Sample("canal-json", "canal-json", 29_000),
    Sample("canal-json-default", "canal-json"),
    Sample("debezium-disable-schema", "debezium"),
    Sample("debezium", "debezium", 9_000),
    Sample("open", "open-protocol", 22_000),
    Sample("open-batched", "open-protocol"),
    Sample("simple-json", "simple", 66_000),
    Sample("simple-avro", "simple", 67_000, _GOLDEN / "ticdc/simple-avro/message.avsc"),
    Sample("cloudcanal-json", "cloudcanal-json", written=True),
    Sample("dts-avro", "dts-avro", avsc=_GOLDEN / "native/dts/Record.avsc", written=True),
)
