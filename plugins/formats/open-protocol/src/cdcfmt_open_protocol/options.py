"""The options of open-protocol."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_toolkit.large_messages import (
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
        help="Whether TiCDC's `sink.open.output-old-value` was on, which messages do not show. "
        "`true`, TiCDC's default: a row with only new values is an insert. `false`: it is an "
        "upsert, as updates look the same. `auto`: an insert if another row of the same message "
        "has old values, else an upsert.",
    ),
    HANDLE_KEY_DELETES_OPTION,
    Option(
        name="ticdcArchitecture",
        type="choice",
        choices=("auto", "classic", "new"),
        default="auto",
        help="Which TiCDC wrote the messages, for old values of `only-output-updated-columns`. "
        "`classic`: null is NULL. `new`: null may be NULL, empty or zero. `auto`: detected for "
        "each message; without a row id (`rid`), as for tables not clustered by a single integer "
        "key, null is uncertain and absent from the image.",
    ),
    Option(
        name="maxBatchEvents",
        type="int",
        default=100_000,
        minimum=1,
        help="Maximum number of events in one message; a message with more is corrupt.",
    ),
)

ENCODE_OPTIONS = (
    Option(
        name="maxBatchSize",
        type="int",
        default=16,
        minimum=1,
        help="Maximum number of rows in one message, which `maxMessageBytes` also limits.",
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
        help="Write only the old values of changed columns.",
    ),
    HANDLE_KEY_DELETES_ENCODE_OPTION,
)
