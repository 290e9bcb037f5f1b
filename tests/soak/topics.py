"""The content of topics, by an independent client."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import Consumer, TopicPartition

from cdcfmt_core.events import Message


def of_topic(servers: str, topic: str) -> Iterator[Message]:
    """All messages of a topic, without those of aborted transactions."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "soak", "log_level": 0})
    try:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        for partition in partitions:
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=60)
            consumer.assign([place])
            while consumer.position([place])[0].offset < end:
                for record in consumer.consume(500, 1):
                    if record.error() is None:
                        yield Message(
                            record.key(),
                            record.value(),
                            tuple(record.headers() or ()),
                            topic=topic,
                            partition=partition,
                            offset=record.offset(),
                            timestamp=record.timestamp()[1],
                        )
    finally:
        consumer.close()
