"""The options of ticdc-avro."""

from __future__ import annotations

from cdcfmt_core import Option
from cdcfmt_toolkit.avro_output import AVRO_OPTIONS
from cdcfmt_toolkit.row_checksum import VERIFY_OPTION

OPTIONS: tuple[Option, ...] = (VERIFY_OPTION,)

ENCODE_OPTIONS = (
    Option(
        name="enableTidbExtension",
        type="bool",
        default=False,
        help="Write operation and commit_ts of each row. Without it, inserts and updates "
        "look alike to readers.",
    ),
    Option(
        name="avroIncludeBeforeValue",
        type="bool",
        default=False,
        help="Write the before image of an update, and deletes as whole rows instead of keys, as "
        "TiCDC's `avro-include-before-value` does.",
    ),
    Option(
        name="enableRowChecksum",
        type="bool",
        default=False,
        help="Write the checksums that the events have (`extra.checksum`), as text.",
    ),
    Option(
        name="avroEnableWatermark",
        type="bool",
        default=False,
        help="Write DDL, watermarks, and the commit_ts of deletes, in messages that other readers "
        "of Avro do not know, as TiCDC's `avro-enable-watermark` does.",
    ),
    *AVRO_OPTIONS,
    Option(
        name="namespace",
        default="default",
        help="TiCDC's keyspace, which begins the namespace of the records.",
    ),
)
