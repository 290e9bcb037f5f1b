"""AWS Glue's schema registry, by boto3.

A payload follows 0x03, a byte for its compression (0x00 none, 0x05 zlib) and the 16 bytes of the
schema version's UUID (com.amazonaws.services.schemaregistry.utils.AWSSchemaRegistryConstants).
"""

from __future__ import annotations

import functools
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import (
    DecodeError,
    MissingDependencyError,
    SinkError,
    SourceError,
    describe,
)
from cdcfmt_core.schema_registry import (
    PREFIX,
    Headers,
    Part,
    SchemaId,
    SchemaRegistry,
    WriterSchema,
)
from cdcfmt_schema_registry.options import ENDPOINT, PROFILE, REGION, RETRIES, TIMEOUT, no_answer

_HEAD: Final = 18
_PLAIN, _ZLIB = 0, 5
_KINDS: Final[Mapping[str, Any]] = {"AVRO": "avro", "JSON": "json", "PROTOBUF": "protobuf"}
_REFUSALS: Final = (
    "AccessDenied",
    "ExpiredToken",
    "InvalidSignature",
    "UnrecognizedClient",
    "IncompleteSignature",
    "InvalidClientTokenId",
)
_LOGIN: Final = "credentials are those of boto3: environment, profile or role, of each executor too"


def open_registry(values: Mapping[str, Any]) -> SchemaRegistry:
    """A registry, without a connection."""
    return GlueRegistry(*(values[name] for name in (REGION, ENDPOINT, PROFILE, RETRIES, TIMEOUT)))


@attrs.frozen
class GlueRegistry(SchemaRegistry):
    """The schema registry of an AWS region; its client connects on the first request."""

    region: str | None
    endpoint: str | None
    profile: str | None
    retries: int
    timeout: int

    @property
    def name(self) -> str:
        return "" if self.region is None else f"AWS Glue {self.region}"

    def split(
        self, data: bytes, headers: Headers, part: Part
    ) -> tuple[SchemaId, bytes | memoryview] | None:
        if data[:1] != b"\3" or len(data) < _HEAD or data[1] not in (_PLAIN, _ZLIB):
            return None
        schema_id = str(uuid.UUID(bytes=bytes(data[2:_HEAD])))
        payload = memoryview(data)[_HEAD:]
        return schema_id, payload if data[1] == _PLAIN else _decompressed(payload)

    def schema(self, schema_id: SchemaId) -> WriterSchema:
        found = self._version(schema_id)
        kind = _KINDS.get(found["DataFormat"])
        if kind is None:
            raise DecodeError(f"schema id {schema_id}: {found['DataFormat']} is an unknown kind")
        return WriterSchema(schema_id, kind, found["SchemaDefinition"])

    def describe(self, schema_id: SchemaId) -> Mapping[str, Any]:
        found = self._version(schema_id)
        # arn:aws:glue:REGION:ACCOUNT:schema/REGISTRY/SCHEMA
        name = str(found.get("SchemaArn", "")).partition(":schema/")[2]
        return {"subjects": [f"{name}, version {found.get('VersionNumber')}"]}

    def register(self, part: Part, record: str, schema: WriterSchema) -> SchemaId:
        raise SinkError(f"{self.name}: schemas cannot be registered; set {PREFIX}url to write")

    def frame(
        self, schema_id: SchemaId, payload: bytes, part: Part
    ) -> tuple[bytes, tuple[tuple[str, bytes | None], ...]]:
        return bytes((3, _PLAIN)) + uuid.UUID(str(schema_id)).bytes + payload, ()

    def _version(self, schema_id: SchemaId) -> Any:
        with self._naming_failures():
            client = _client(self)
            return client.get_schema_version(SchemaVersionId=str(schema_id))

    @contextmanager
    def _naming_failures(self) -> Iterator[None]:
        """:raises LookupError, SourceError: for failures of the client."""
        try:
            from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
        except ImportError:
            raise MissingDependencyError(
                "AWS Glue's schema registry needs boto3: "
                "pip install 'cdcfmt-schema-registry[glue]', on driver and executors"
            ) from None
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code == "EntityNotFoundException":
                raise LookupError(code) from error
            if code.startswith(_REFUSALS):
                raise SourceError(
                    f"schema registry {self.name} refuses the login ({code}): {_LOGIN}"
                ) from error
            raise no_answer(SourceError, self.name, code) from error
        except NoCredentialsError as error:
            raise SourceError(f"schema registry {self.name}: no credentials: {_LOGIN}") from error
        except BotoCoreError as error:
            raise no_answer(SourceError, self.name, describe(error)) from error


@functools.lru_cache(maxsize=16)
def _client(registry: GlueRegistry) -> Any:
    import boto3
    from botocore.config import Config

    session = boto3.session.Session(profile_name=registry.profile, region_name=registry.region)
    settings = Config(
        connect_timeout=registry.timeout,
        read_timeout=registry.timeout,
        retries={"total_max_attempts": registry.retries + 1, "mode": "standard"},
    )
    return session.client("glue", endpoint_url=registry.endpoint, config=settings)


def _decompressed(payload: memoryview) -> bytes:
    """:raises DecodeError: for damaged data, or data of more than a message's maximum bytes."""
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(payload, DEFAULT_MAX_MESSAGE_BYTES)
    except zlib.error as error:
        raise DecodeError(f"the compressed payload is damaged: {error}") from error
    if not inflate.eof:
        if inflate.unconsumed_tail:
            raise DecodeError(
                f"the payload has more than {DEFAULT_MAX_MESSAGE_BYTES} bytes when decompressed"
            )
        raise DecodeError("the compressed payload is cut off")
    return data
