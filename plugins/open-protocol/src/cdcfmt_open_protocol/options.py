"""The options of open-protocol."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_core.toolkit.large_messages import (
    COMPRESSION_OPTION,
    HANDLE_KEY_DELETES_ENCODE_OPTION,
    HANDLE_KEY_DELETES_OPTION,
)

OPTIONS = (
    COMPRESSION_OPTION,
    Option(
        name="oldValue",
        type="choice",
        choices=("true", "false", "auto"),
        default="true",
        help="Whether TiCDC's `sink.open.output-old-value` was on; the wire does not say. "
        "`true`, TiCDC's default: a row with new values only is an insert. `false`: it is an "
        "upsert, as updates look the same. `auto`: an insert where another row of the same "
        "message has old values, else an upsert.",
    ),
    HANDLE_KEY_DELETES_OPTION,
    Option(
        name="ticdcArchitecture",
        type="choice",
        choices=("auto", "classic", "new"),
        default="auto",
        help="Which TiCDC wrote the messages, for old values of `only-output-updated-columns`. "
        "`classic`: null is NULL. `new`: null may be NULL, or empty or zero. `auto`: by each "
        "message; without a row id (`rid`), which tables lack that are clustered by another key "
        "than one integer, null is uncertain and absent from the image.",
    ),
    Option(
        name="maxBatchEvents",
        type="int",
        default=100_000,
        minimum=1,
        help="Most events in one message; a message with more is corrupt.",
    ),
)

ENCODE_OPTIONS = (
    Option(
        name="maxBatchSize",
        type="int",
        default=16,
        minimum=1,
        help="Most rows in one message; `maxMessageBytes` bounds it, too.",
    ),
    Option(
        name="outputOldValue",
        type="bool",
        default=True,
        help="Write the old values of updates. Without them inserts and updates look the same.",
    ),
    Option(
        name="onlyOutputUpdatedColumns",
        type="bool",
        default=False,
        help="Write only changed columns among the old values.",
    ),
    HANDLE_KEY_DELETES_ENCODE_OPTION,
)
