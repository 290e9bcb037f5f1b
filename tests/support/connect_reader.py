"""Kafka Connect's JSON converter and Debezium's own transform, in the JVM of a Spark session.

Consumers of Debezium's messages run these two: the first reads what the schema says, and fails
on whatever does not fit, the second takes the row out of the envelope.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from support.maven import resolve

CONNECT = "4.1.1"
DEBEZIUM = "3.0.8.Final"
TOPIC = "topic"


class ConnectReader:
    """Loads the jars, apart from Spark's own of the same libraries."""

    def __init__(self, spark: SparkSession) -> None:
        folders = [
            resolve("org.apache.kafka", "connect-json", CONNECT),
            resolve("org.apache.kafka", "connect-transforms", CONNECT, transitive=False),
            resolve("io.debezium", "debezium-core", DEBEZIUM, transitive=False),
            resolve("io.debezium", "debezium-api", DEBEZIUM, transitive=False),
        ]
        context = spark.sparkContext
        assert context._gateway is not None
        self._gateway = context._gateway
        self._jvm: Any = context._jvm
        jars = [jar for folder in folders for jar in sorted(folder.glob("*.jar"))]
        urls = self._gateway.new_array(self._jvm.java.net.URL, len(jars))
        for index, jar in enumerate(jars):
            urls[index] = self._jvm.java.io.File(str(jar)).toURI().toURL()
        platform = self._jvm.java.lang.ClassLoader.getPlatformClassLoader()
        self._loader = self._jvm.java.net.URLClassLoader(urls, platform)
        self._converters = {}
        for is_key in (False, True):
            converter = self._new("org.apache.kafka.connect.json.JsonConverter")
            converter.configure(self._map({"schemas.enable": "true"}), is_key)
            self._converters[is_key] = converter
        self._unwrap = self._new("io.debezium.transforms.ExtractNewRecordState")
        self._unwrap.configure(
            self._map(
                {"delete.tombstone.handling.mode": "rewrite", "add.fields": "op,source.ts_ms"}
            )
        )
        (self._new_record,) = (
            constructor
            for constructor in self._class(
                "org.apache.kafka.connect.sink.SinkRecord"
            ).getConstructors()
            if constructor.getParameterCount() == 7
        )

    def read(self, data: bytes, *, is_key: bool = False) -> Any:
        """The payload as the converter understood it, written by it again."""
        converter = self._converters[is_key]
        read = converter.toConnectData(TOPIC, data)
        written = converter.fromConnectData(TOPIC, read.schema(), read.value())
        return json.loads(bytes(written))["payload"]

    def unwrapped(self, key: bytes, value: bytes) -> Any:
        """The row that Debezium's transform takes out, and what it adds."""
        parts = [TOPIC, 0]
        for is_key, data in ((True, key), (False, value)):
            read = self._converters[is_key].toConnectData(TOPIC, data)
            parts += [read.schema(), read.value()]
        arguments = self._gateway.new_array(self._jvm.java.lang.Object, 7)
        for index, part in enumerate([*parts, 0]):
            arguments[index] = part
        record = self._unwrap.apply(self._new_record.newInstance(arguments))
        written = self._converters[False].fromConnectData(
            TOPIC, record.valueSchema(), record.value()
        )
        return json.loads(bytes(written))["payload"]

    def _class(self, name: str) -> Any:
        return self._loader.loadClass(name)

    def _new(self, name: str) -> Any:
        none = self._gateway.new_array(self._jvm.java.lang.Class, 0)
        nothing = self._gateway.new_array(self._jvm.java.lang.Object, 0)
        return self._class(name).getConstructor(none).newInstance(nothing)

    def _map(self, values: dict[str, str]) -> Any:
        result = self._jvm.java.util.HashMap()
        for name, value in values.items():
            result.put(name, value)
        return result
