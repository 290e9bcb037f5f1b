"""Decodes an input into events, with schemas, positions and progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import dropwhile

import attrs

from cdcfmt_cli.console import note
from cdcfmt_cli.inputs import CommandInput, public
from cdcfmt_cli.printing import number as number_text
from cdcfmt_cli.progress import ProgressBar
from cdcfmt_cli.settings import Settings
from cdcfmt_core.codec import AUTO, CodecSpec
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange, TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.opening import claim_check_reader
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_scan import SCANS, open_input_scan
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_files.sources import BadLine, Lines, one_by_one
from cdcfmt_files.sources.lines import marked_lines
from cdcfmt_toolkit.inputs import Slice
from cdcfmt_toolkit.table_texts import unmatched_exclusions, unmatched_tables


@attrs.frozen
class Decoded:
    """A message and its events.

    ``number`` counts the input's messages from 0; ``protocol`` is None for an unknown format.
    """

    number: int
    message: Message
    events: list[Event]
    protocol: str | None


class Reader:
    """Decodes the messages of an input, in order.

    Formats whose rows may lack column types need the schemas of the whole input: the first
    message of such a format triggers a scan of the input, if it can be read twice.

    - ``schemas``: the schemas that the decoder uses
    - ``counts``: values that were changed without an error
    - ``count``: number of messages that the last iteration has read
    - ``hidden``: number of corrupt messages and rows that the last iteration has left out
    - ``first_bad``: the reason of the first corrupt one; empty if there was none

    :param follows_kind: leave out corrupt messages and rows if the option ``kind`` does.
    """

    def __init__(
        self,
        source: CommandInput,
        settings: Settings,
        event_filter: EventFilter | None = None,
        *,
        follows_kind: bool = False,
    ) -> None:
        self._source = source
        self.settings = settings
        self.schemas = SchemaStore(settings["maxCachedSchemaBytes"])
        self.counts: Counter[str] = Counter()
        self.count = self.hidden = 0
        self.first_bad = ""
        self._hides = follows_kind and bool(settings["kind"]) and "corrupt" not in settings["kind"]
        self.event_filter = settings.event_filter() if event_filter is None else event_filter
        self.decoder = self._open_decoder(self.event_filter, self.schemas, self.counts)
        default_registry().warn(settings["protocol"])
        scans = settings["scanSchemas"] and source.again
        self._scanning = _scanning_codecs(settings["protocol"]) if scans else []

    def __iter__(self) -> Iterator[Decoded]:
        self.hidden = 0
        for number, message in enumerate(self.messages()):
            self.count = number + 1
            yield self.decode(number, message)

    @property
    def slices(self) -> Sequence[Slice]:
        """The whole files or partitions of the input."""
        return self._source.slices()

    def read_end(self, slice_: Slice, size: int) -> Iterator[Decoded]:
        """The last messages of a partition, decoded: those of ``size`` offsets.

        Leaves out messages without a value at the beginning of this part: the format and table of
        a delete may show in messages before it.
        """
        end = slice_.last(size) or slice_
        messages = self._source.read(end)
        if end.size < slice_.size:
            messages = dropwhile(lambda message: message.value is None, messages)
        with ProgressBar("reading back", end.size, self._source.unit) as progress:
            for number, message in enumerate(messages):
                progress.count()
                progress.advance(1)
                self.count += 1
                yield self.decode(number, message)

    def heads(self, count: int) -> Iterator[Decoded]:
        """The first messages of every file or partition, decoded."""
        for number, message in enumerate(self._source.heads(count)):
            yield self.decode(number, message)

    def row_tables(self, *, whole: bool) -> Iterator[TableSchema]:
        """The tables of the rows of the input, if it can be read twice.

        They are decoded apart: nothing is counted or remembered, except the schemas of a scan.

        :param whole: all rows; else those in the first and last messages of every file or
            partition.
        """
        decoder = None
        if whole:
            messages = self.messages("looking at columns")
        else:
            messages = self._source.ends(thorough=False)
        for message in messages:
            if isinstance(message, Message):
                known = self._scanning
                self._scan_for(message)
                if decoder is None or self._scanning is not known:
                    decoder = self._open_decoder(
                        attrs.evolve(self.event_filter), self.schemas.copy(), Counter()
                    )
                for event in decoder.decode(message):
                    if isinstance(event, RowChange):
                        yield event.table

    def messages(self, what: str = "reading") -> Iterator[Message | BadLine]:
        """The messages without decoding, with a progress bar."""
        with ProgressBar(what, self._source.total, self._source.unit) as progress:
            for message in self._source.messages(progress.advance):
                progress.count()
                yield message

    @property
    def is_live(self) -> bool:
        """Whether messages arrive one by one."""
        return self._source.live

    def blocks(self, what: str = "reading") -> Iterator[Message | BadLine | Lines]:
        """Like :meth:`messages`, but may yield unsplit blocks of lines."""
        with ProgressBar(what, self._source.total, self._source.unit) as progress:
            for item in self._source.blocks(progress.advance):
                progress.count(len(item) if isinstance(item, Lines) else 1)
                yield item

    def check_names(self) -> None:
        """Call at the end of the input; prints a note about exclusions that matched no table.

        :raises CdcfmtError: for a table or table pattern that matched nothing.
        """
        if (text := unmatched_exclusions(self.event_filter)) is not None:
            note(text)
        self.check_tables()

    def check_tables(self) -> None:
        """:raises CdcfmtError: for a table or table pattern that has matched nothing so far."""
        if (text := unmatched_tables(self.event_filter)) is not None:
            raise CdcfmtError(text)

    def schemas_of(self, table: tuple[str, ...]) -> Iterator[TableSchema]:
        """The table's schemas that are known so far."""
        yield from self.schemas.versions_of(table)

    def decode(self, number: int, message: Message | BadLine) -> Decoded:
        decoded = self._decode(number, message)
        if not self.first_bad:
            bad = (event.error for event in decoded.events if isinstance(event, Corrupt))
            self.first_bad = str(next(bad, ""))
        if self._hides:
            good: list[Event] = [
                event for event in decoded.events if not isinstance(event, Corrupt)
            ]
            self.hidden += len(decoded.events) - len(good)
            decoded = attrs.evolve(decoded, events=good)
        return decoded

    def _decode(self, number: int, message: Message | BadLine) -> Decoded:
        if isinstance(message, BadLine):
            held = Message(None, message.value, path=message.path, offset=message.offset)
            return Decoded(number, held, [Corrupt(message.error)], None)
        self._scan_for(message)
        events = self.decoder.decode(message)
        return Decoded(number, message, events, self.decoder.protocol)

    def _open_decoder(
        self, event_filter: EventFilter, schemas: SchemaStore, counts: Counter[str]
    ) -> MessageDecoder:
        values = self.settings.values
        return MessageDecoder(
            values,
            self.settings.codec,
            event_filter,
            claim_checks=claim_check_reader(values, self.settings.storage_options),
            schemas=schemas,
            counts=counts,
        )

    def _scan_for(self, message: Message) -> None:
        """Scan the whole input, once, if messages like this one need that."""
        if self._scanning and self._needs_schemas(message):
            self._scanning = []
            self._scan()

    def _needs_schemas(self, message: Message) -> bool:
        if self.settings["protocol"].lower() != AUTO:
            return True
        # Framed messages are recognised by their writer schemas.
        return self.decoder.codec_of(message) in self._scanning

    def _scan(self) -> None:
        scan = open_input_scan(self.settings.values, self.settings.codec)
        if scan is None:
            return
        may_tell = marked_lines(scan.marks, self.settings["lineFormat"], b"\n")
        for block in self.blocks("looking for table schemas"):
            if isinstance(block, Lines) and may_tell is not None and not may_tell(block.data):
                continue
            for message in one_by_one([block]):
                if isinstance(message, Message):
                    for record in scan(message):
                        self.schemas.add(record)


def note_corrupt(count: int, paths: Sequence[str] = ()) -> None:
    """Print how many messages and rows are corrupt, if any, and the command that lists them."""
    if count:
        command = " ".join(["cdcfmt validate", *public(paths)])
        note(f"{number_text(count)} corrupt: {command} lists them with position and reason")


def _scanning_codecs(protocol: str) -> list[CodecSpec]:
    codecs = default_registry().codecs_of(protocol)
    return [codec for codec in codecs if any(getattr(codec, scan) for scan in SCANS)]
