"""Kafka Connect's converters and Debezium's own transform, in the JVM of a Spark session.

Consumers of Debezium's messages run these: a converter reads what the schema says, and fails
on whatever does not fit; the transform takes the row out of the envelope.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from support.maven import resolve

CONNECT = "4.1.1"
DEBEZIUM = "3.0.8.Final"
TOPIC = "topic"
APICURIO = "2.6.13.Final"


def connect() -> list[Path]:
    """Folders with the jars of Kafka Connect and of Debezium's transform."""
    return [
        resolve("org.apache.kafka", "connect-json", CONNECT),
        resolve("org.apache.kafka", "connect-transforms", CONNECT, transitive=False),
        resolve("io.debezium", "debezium-core", DEBEZIUM, transitive=False),
        resolve("io.debezium", "debezium-api", DEBEZIUM, transitive=False),
    ]


class ConnectReader:
    """Loads the jars, apart from Spark's own of the same libraries."""

    _connect: ClassVar[Any] = None
    """The loader of :func:`connect`, one a JVM: Py4J keeps methods by the names of classes."""

    converter = "org.apache.kafka.connect.json.JsonConverter"

    def __init__(self, spark: SparkSession, **settings: str) -> None:
        context = spark.sparkContext
        assert context._gateway is not None
        self._gateway = context._gateway
        self._jvm: Any = context._jvm
        if ConnectReader._connect is None:
            platform = self._jvm.java.lang.ClassLoader.getPlatformClassLoader()
            ConnectReader._connect = self._load(connect(), platform)
        self._loader = self._load(self._more_jars(), ConnectReader._connect)
        self._converters = self._opened(self.converter, settings or {"schemas.enable": "true"})
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

    def _more_jars(self) -> list[Path]:
        """Folders of jars beside those of Connect."""
        return []

    def _load(self, folders: list[Path], parent: Any) -> Any:
        jars = [jar for folder in folders for jar in sorted(folder.glob("*.jar"))]
        urls = self._gateway.new_array(self._jvm.java.net.URL, len(jars))
        for index, jar in enumerate(jars):
            urls[index] = self._jvm.java.io.File(str(jar)).toURI().toURL()
        return self._jvm.java.net.URLClassLoader(urls, parent)

    def _opened(self, converter: str, settings: dict[str, str]) -> dict[bool, Any]:
        opened = {is_key: self._new(converter) for is_key in (False, True)}
        # It finds its own classes by the thread, which Spark uses as well.
        thread = self._jvm.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(self._loader)
        try:
            for is_key, each in opened.items():
                each.configure(self._map(settings), is_key)
        finally:
            thread.setContextClassLoader(before)
        return opened

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
        written = self._printers()[False].fromConnectData(
            TOPIC, record.valueSchema(), record.value()
        )
        return json.loads(bytes(written))["payload"]

    def _printers(self) -> dict[bool, Any]:
        return self._converters

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


class AvroConnectReader(ConnectReader):
    """Apicurio's AvroConverter with a real registry: Avro's Java library and Connect's types."""

    converter = "io.apicurio.registry.utils.converter.AvroConverter"

    def __init__(self, spark: SparkSession, address: str) -> None:
        given = {
            "apicurio.registry.url": f"{address}/apis/registry/v2",
            "apicurio.registry.as-confluent": "true",
            "apicurio.registry.use-id": "contentId",
            "apicurio.registry.headers.enabled": "false",
        }
        super().__init__(spark, **given)
        self._json = self._opened(ConnectReader.converter, {"schemas.enable": "true"})

    def _more_jars(self) -> list[Path]:
        return [resolve("io.apicurio", "apicurio-registry-utils-converter", APICURIO)]

    def _printers(self) -> dict[bool, Any]:
        return self._json

    def as_json(self, data: bytes, *, is_key: bool = False) -> bytes:
        """The same message as Connect's JSON with its schema."""
        read = self._converters[is_key].toConnectData(TOPIC, data)
        return bytes(self._json[is_key].fromConnectData(TOPIC, read.schema(), read.value()))
