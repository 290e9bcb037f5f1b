"""The options of debezium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from cdcfmt_core import Option
from cdcfmt_debezium.avro import ESCAPED
from cdcfmt_debezium.binary import BINARY_MODES
from cdcfmt_debezium.decimals import DECIMAL_MODES
from cdcfmt_debezium.given_tables import EXAMPLE
from cdcfmt_debezium.given_tables import OPTION as GIVEN
from cdcfmt_debezium.message import DEFAULT_PLACEHOLDER, FLATTENED_PREFIX, TICDC
from cdcfmt_debezium.profile import SIGNED, ProducerProfile
from cdcfmt_toolkit.avro_output import AVRO_OPTIONS
from cdcfmt_toolkit.default_table import DEFAULT_TABLE_OPTION
from cdcfmt_toolkit.large_messages import COMPRESSION_OPTION

_UNITS: Final[dict[str, tuple[str | None, str | None]]] = {
    "auto": ("auto", "auto"),
    "adaptive_time_microseconds": (None, "us"),
    "adaptive": (None, None),
    "connect": ("ms", "ms"),
    "microseconds": ("us", "us"),
    "nanoseconds": ("ns", "ns"),
    "isostring": (None, "us"),
}
"""``time.precision.mode`` → the units of DATETIME and of TIME."""

OPTIONS = (
    COMPRESSION_OPTION,
    Option(
        name="onMissingSchema",
        type="choice",
        choices=("raw", "fail"),
        default="raw",
        help="A row whose column types are neither in the message nor in a previous DDL. `raw`: "
        "types are unknown, and values are the unchanged JSON. `fail`: the row is corrupt. Spark "
        "uses its own option of this name, whose `corrupt` has this effect.",
    ),
    Option(
        name=GIVEN,
        help="Column types of tables whose messages have no schema, as a JSON object of schemas "
        f"(databases of MySQL), tables and columns: `{EXAMPLE}`; a database may be before the "
        "schemas. They are type texts of `typeMap`; null is a value as in the JSON. A column that "
        "is not listed makes a bad row. DDL does not count for these tables.",
    ),
    Option(
        name="decimalHandlingMode",
        type="choice",
        choices=DECIMAL_MODES,
        default="auto",
        help="The connector's `decimal.handling.mode`, for messages without schema. `auto`: "
        "detected by each value and its column's type; text that could be a number or the base64 "
        "of another number is an error.",
    ),
    Option(
        name="timePrecisionMode",
        type="choice",
        choices=tuple(_UNITS),
        default="auto",
        help="The connector's `time.precision.mode`, for messages without schema. `auto`: the "
        "connectors' default (`adaptive_time_microseconds`), or another unit if the value shows "
        "it; an ambiguous number is an error.",
    ),
    Option(
        name="binaryHandlingMode",
        type="choice",
        choices=BINARY_MODES,
        default="auto",
        help="The connector's `binary.handling.mode`. `auto`: by the message's schema, which "
        "has a type for `bytes`, else by each value and its column's length; text that could be "
        "hexadecimal or base64 is an error. The content of PostgreSQL's logical "
        "messages is read likewise.",
    ),
    Option(
        name="fieldNameAdjustmentMode",
        type="choice",
        choices=tuple(ESCAPED),
        default="auto",
        help="The connector's `field.name.adjustment.mode`, for Avro. The escapes of "
        "`avro_unicode` are undone; what `avro` replaced is lost. `auto`: by the names in the "
        "schema.",
    ),
    Option(
        name="unavailableValuePlaceholder",
        default=DEFAULT_PLACEHOLDER,
        help="The connector's `unavailable.value.placeholder`: a column with this value is absent.",
    ),
    DEFAULT_TABLE_OPTION,
    Option(
        name="flattened",
        type="bool",
        default=False,
        help="The messages passed the transform ExtractNewRecordState: rows without envelope. A "
        "message without value is then a delete.",
    ),
    Option(
        name="flattenedPrefix",
        default=FLATTENED_PREFIX,
        help="The transform's `add.fields.prefix` (and `add.headers.prefix`). Fields whose names "
        "begin with it are not columns, unless the key has them.",
    ),
    Option(
        name="flattenedDatabase",
        help="The database of flattened rows, if neither a header nor a field `__db` has it. "
        "Default: by the topic name.",
    ),
    Option(
        name="flattenedTable",
        type="choice",
        choices=("auto", "topic"),
        default="auto",
        help="The table of flattened rows. `auto`: of headers and the field `__table`, else of the "
        "topic's name; that of a delete without value as the rows of its topic have it. `topic`: "
        "the topic's name alone, for rows and deletes.",
    ),
)


def profiles(options: Mapping[str, Any]) -> dict[str, ProducerProfile]:
    """The profiles of TiCDC, CloudCanal, and (by options) the connectors."""
    datetimes, times = _UNITS[options["timePrecisionMode"]]
    decimals, binary = options["decimalHandlingMode"], options["binaryHandlingMode"]
    connector = ProducerProfile(
        guessed=True,
        datetimes=datetimes,
        times=times,
        # NaN and the infinities are text.
        decimals="string" if decimals == "double" else decimals,
        doubles=decimals == "double",
        binary=binary,
    )
    found = {
        "connector": connector,
        "cloudcanal": ProducerProfile(doubles=False, binary=binary, texts=True),
    }
    found[TICDC] = ProducerProfile(null_years=True)
    signed = {SIGNED + name: attrs.evolve(each, unsigned=False) for name, each in found.items()}
    return found | signed


ENCODE_OPTIONS = (
    Option(
        name="encodingFormat",
        type="choice",
        choices=("json", "avro"),
        default="json",
        help="`json`, or `avro` with a [schema registry](../registries.md), as TiCDC's "
        "`debezium-avro`.",
    ),
    *AVRO_OPTIONS,
    Option(
        name="avroSchemaNames",
        type="choice",
        choices=("ticdc", "connector"),
        default="ticdc",
        help="Avro: names of schemas. `ticdc`: `CLUSTER.DATABASE.TABLEEnvelope`, `…TABLE`, "
        "`…TABLEKey`. `connector`: `CLUSTER.DATABASE.TABLE.Envelope`, `….Value`, `….Key`, as of a "
        "connector with the topic prefix `clusterId`; its sinks and generated classes need these.",
    ),
    Option(
        name="debeziumDisableSchema",
        type="bool",
        default=False,
        help="Write messages without their `schema`, as TiCDC's `debezium-disable-schema` does.",
    ),
    Option(
        name="enableTidbExtension",
        type="bool",
        default=False,
        help="Write the columns' TiDB types (`tidb_type`) into the schema, and write watermarks.",
    ),
    Option(
        name="debeziumOutputOldValue",
        type="bool",
        default=True,
        help="Write the before image of an update, as TiCDC's `debezium-output-old-value` does.",
    ),
    Option(
        name="clusterId",
        default="default",
        help="TiCDC's cluster id, which names the stream (`source.name`) and its schemas.",
    ),
)
