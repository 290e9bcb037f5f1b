"""The options of reading and writing."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_toolkit.topics.options import OFFSET_OPTIONS, SUBSCRIBE, TOPIC_OPTIONS

SETTINGS = Option(
    name="spool.*",
    hidden=True,
    help="`spool.path`: the folder of the topics (required); `spool.token`: the text of its file "
    "`token`, if it has one.",
)
SOURCE_OPTIONS = (SETTINGS, SUBSCRIBE, *OFFSET_OPTIONS, *TOPIC_OPTIONS)
SINK_OPTIONS = (SETTINGS, Option(name="topic", help="Topic to write to; it must exist."))


def options_of_url(url: str) -> dict[str, str]:
    """The options of ``spool://folder/topic``."""
    path, _, topic = url.removeprefix("spool://").rpartition("/")
    return {"spool.path": path, "subscribe": topic}
