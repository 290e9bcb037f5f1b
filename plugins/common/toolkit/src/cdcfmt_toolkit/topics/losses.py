"""Lost offsets: an error, or a warning and a count (``failOnDataLoss``)."""

from __future__ import annotations

from collections import Counter

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.texts import open_logger

logger = open_logger("cdcfmt_core")


def range_error(wanted: OffsetRange, text: str) -> SourceError:
    """An error with the topic and partition of ``wanted``."""
    return SourceError(f"topic {wanted.topic}, partition {wanted.partition}: {text}")


def lose(lost: OffsetRange, why: str, counts: Counter[str], *, fail: bool) -> None:
    """Count the offsets of ``lost`` as ``offsets lost``, and warn.

    :raises SourceError: if ``fail`` (``failOnDataLoss``).
    """
    text = f"offsets {lost.start} to {lost.end - 1} are gone: {why}"
    if fail:
        raise range_error(
            lost,
            f"{text}. They were deleted (retention), the topic was recreated, or a broker without "
            "them became leader (unclean election); failOnDataLoss=false continues with the "
            "remaining messages",
        )
    logger.warning(
        "topic %s, partition %d: %s; continuing, as failOnDataLoss is false",
        lost.topic,
        lost.partition,
        text,
    )
    counts["offsets lost"] += lost.size
