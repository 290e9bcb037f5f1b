"""Kafka as a source, on confluent-kafka (librdkafka), which is imported on use.

:func:`parse_kafka_options` validates options, which are those of Spark's Kafka source.
:func:`plan_ranges` asks the cluster once which offsets a batch has; :func:`read_range` reads
a part of one partition, :func:`read_ends` the first and last messages of many.
:class:`SchemaSearch` finds a certain table schema around a range, and
:class:`TopicSchemaStore` has all that came before its rows.
:class:`StreamProgress` moves a stream from offset to offset, and
:class:`LowWatermarks` finds below which commit_ts row changes are duplicates.
"""

from cdcfmt_core.io.sources.kafka.client import KafkaClient
from cdcfmt_core.io.sources.kafka.ends import read_ends
from cdcfmt_core.io.sources.kafka.low_watermarks import LowWatermarks
from cdcfmt_core.io.sources.kafka.offsets import (
    OffsetRange,
    OffsetRequest,
    rate_limit,
    split_ranges,
)
from cdcfmt_core.io.sources.kafka.options import (
    CLIENT_PREFIX,
    KAFKA_OPTIONS,
    KafkaOptions,
    is_kafka,
    parse_kafka_options,
)
from cdcfmt_core.io.sources.kafka.plan import plan_ranges
from cdcfmt_core.io.sources.kafka.progress import StreamProgress
from cdcfmt_core.io.sources.kafka.reader import read_range
from cdcfmt_core.io.sources.kafka.schema_search import SchemaSearch
from cdcfmt_core.io.sources.kafka.topic_schemas import TopicSchemaStore

__all__ = [
    "CLIENT_PREFIX",
    "KAFKA_OPTIONS",
    "KafkaClient",
    "KafkaOptions",
    "LowWatermarks",
    "OffsetRange",
    "OffsetRequest",
    "SchemaSearch",
    "StreamProgress",
    "TopicSchemaStore",
    "is_kafka",
    "parse_kafka_options",
    "plan_ranges",
    "rate_limit",
    "read_ends",
    "read_range",
    "split_ranges",
]
