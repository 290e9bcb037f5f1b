"""Low watermarks: all row changes of a topic with a smaller commit_ts precede the batch.

TiCDC delivers at least once: after a restart it sends the last changes again.  The rule is that
of TiCDC's own Kafka consumer, which drops changes below the *lowest* watermark of all partitions
and keeps equal ones.  A partition's own watermark is too high, as newer versions of TiCDC may send
changes below it for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import Source
from cdcfmt_toolkit.topics.topic_scan import TopicScan

logger = open_logger("cdcfmt_core")

_FIRST_PIECE = 500
_AT_ONCE = 8


class LowWatermarks:
    """Finds low watermarks by reading backwards from the start of a batch, without any state.

    :param watermark_of: returns the commit_ts of the last watermark in a message.
    :param lookback: maximum number of offsets to read per partition.
    """

    def __init__(
        self,
        source: Source,
        watermark_of: Callable[[Message], int | None],
        lookback: int,
    ) -> None:
        self._source = source

        def scan(message: Message) -> list[int]:
            found = watermark_of(message)
            return [found] if found else []

        self._scan = TopicScan(source, scan)
        self._lookback = lookback

    def find(self, starts: Mapping[TopicPartition, int]) -> dict[str, int]:
        """The low watermark of each topic; ``starts``: the start of a batch in its partitions.

        0, which drops nothing, if a partition has no watermark before its start.
        """
        first = self._source.offsets(dict.fromkeys(starts, EARLIEST))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            searches = {
                place: threads.submit(self._before, place, first[place], start)
                for place, start in starts.items()
            }
        low_watermarks: dict[str, int] = {}
        for (topic, _), search in searches.items():
            low_watermarks[topic] = min(low_watermarks.get(topic, search.result()), search.result())
        return low_watermarks

    def _before(self, place: TopicPartition, first: int, start: int) -> int:
        """The last watermark before an offset; 0 if there is none."""
        bound = max(first, start - self._lookback)
        # A producer sends watermarks every second or so.
        for stretch in self._scan.back(place, start, bound, piece=_FIRST_PIECE):
            if stretch.found:
                return stretch.found[-1]
        if bound > first:
            logger.warning(
                "cdc: topic %s, partition %d: no watermark in the %d offsets before %d, so "
                "no duplicates are dropped; raise watermarkLookback",
                *place,
                self._lookback,
                start,
            )
        return 0
