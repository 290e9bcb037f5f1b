"""The messages that are measured: golden ones, and their rows in formats that have none."""

from __future__ import annotations

import re
import string
from pathlib import Path

import attrs
from encode import converted
from run import load

from cdcfmt_core.events import Message

_GOLDEN = Path(__file__).parents[1] / "golden"
_TAGS = re.compile(rb'\[(\\?")a\1, \1b\1, \1c\1\]')
"""Three letters in the JSON column of every golden row, however their quotes are written."""
_LETTERS = (string.ascii_letters + string.digits + "!#$%()+*,-./:;=?@[]^_{|}~ ").encode()


def distinct(value: bytes, number: int) -> bytes:
    """The value with texts in its JSON column that no other number gives, and as long."""
    count = len(_LETTERS)
    some = (number % count, number // count % count, number // count**2 % count)
    one, two, three = (_LETTERS[place : place + 1] for place in some)
    quoted = (rb"\g<1>%s\g<1>" % letter for letter in (one, two, three))
    return _TAGS.sub(b"[%s]" % b", ".join(quoted), value)


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
