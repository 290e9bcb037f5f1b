"""Registries with Confluent's API, by the client of confluent-kafka; Apicurio's global ids."""

from __future__ import annotations

import functools
import json
import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import attrs

from cdcfmt_core.errors import DecodeError, OptionError, SinkError, SourceError, describe, show
from cdcfmt_core.schema_registry import (
    PREFIX,
    TOPIC,
    Headers,
    Part,
    SchemaId,
    SchemaRegistry,
    WriterSchema,
)
from cdcfmt_schema_registry import framing
from cdcfmt_schema_registry.framing import GLOBAL, GUID
from cdcfmt_schema_registry.options import (
    AUTO_REGISTER,
    CA,
    ISSUER,
    KEY_SUBJECT,
    TOKEN,
    TOKEN_SOURCE,
    URL,
    USE_ID,
    USE_LATEST,
    USER_INFO,
    VALUE_SUBJECT,
    no_answer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

MAX_DEPTH: Final = 30
MAX_REFERENCES: Final = 1_000
MAX_BYTES: Final = 16 << 20
"""Limits of one schema: of its references' depth and number, and of all their text."""

_KINDS: Final[Mapping[str, Any]] = {
    "AVRO": "avro",
    "JSON": "json",
    "KCONNECT": "json",
    "PROTOBUF": "protobuf",
}
_NO_SUCH_SCHEMA: Final = range(40401, 40404)
"""Confluent's error codes for an unknown subject, version and schema."""
_UNKNOWN_TO_APICURIO: Final = re.compile(r"No (artifact|content|version)\b")
"""How its own API says that it knows the address, but not the id."""
_CONFLICT: Final = 409
_CLOUD: Final = f"{PREFIX}bearer.auth.logical.cluster"
_OURS: Final = (USE_ID, AUTO_REGISTER, USE_LATEST, TOPIC, KEY_SUBJECT, VALUE_SUBJECT)
"""The options that are not the client's: attributes of the registry, in this order."""
_NO_TOPIC: Final = (
    f"option {TOPIC}: the schemas' subjects are named by a topic: give its name, or set "
    f"{KEY_SUBJECT} and {VALUE_SUBJECT} to RecordNameStrategy"
)

_T = TypeVar("_T")


def open_registry(values: Mapping[str, Any]) -> SchemaRegistry:
    """A registry, without a connection.

    :raises OptionError: for an invalid address, and for logins that exclude each other.
    """
    url, ours = values[URL], _OURS
    if not url:
        return ConfluentRegistry("", (), values[USE_ID])
    settings = {
        name.removeprefix(PREFIX): value
        for name, value in values.items()
        if value is not None and name not in ours
    }
    addresses, login = _addresses(url)
    settings["url"] = ",".join(addresses)
    if login is not None:
        if values[USER_INFO] is not None:
            raise OptionError(f"option {URL}: it has a login, and so has {USER_INFO}: give one")
        settings["basic.auth.user.info"] = login
    if ":" not in settings.get("basic.auth.user.info", ":"):
        raise OptionError(f"option {USER_INFO}: the given value is not user:password")
    if values[TOKEN_SOURCE] is None and (values[TOKEN] or values[ISSUER]):
        source = "STATIC_TOKEN" if values[TOKEN] else "OAUTHBEARER"
        settings["bearer.auth.credentials.source"] = source
    if "bearer.auth.credentials.source" in settings:
        # The client requires it, and registries other than Confluent Cloud ignore it.
        settings.setdefault(_CLOUD.removeprefix(PREFIX), "")
    return ConfluentRegistry(
        ",".join(sorted(addresses)),
        tuple(sorted(settings.items())),
        *(values[name] for name in ours),
    )


def _addresses(url: str) -> tuple[list[str], str | None]:
    """The addresses without logins, and the first one's login."""
    addresses, login = [], None
    for text in filter(None, (each.strip() for each in url.split(","))):
        try:
            parts = urlsplit(text)
            valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise OptionError(
                f"option {URL}: an address has the form http://host:8081 or https://host, without "
                "which there is no registry to ask"
            )
        user, at, host = parts.netloc.rpartition("@")
        if at and login is None:
            login = unquote(user)
        addresses.append(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")))
    return addresses, login


@attrs.frozen
class ConfluentRegistry(SchemaRegistry):
    """A registry; its client connects on the first request of a process."""

    name: str
    settings: tuple[tuple[str, Any], ...] = attrs.field(repr=False)
    use_id: framing.UseId
    auto_register: bool = True
    use_latest: bool = False
    topic: str | None = None
    key_subject: str = "TopicNameStrategy"
    value_subject: str = "TopicNameStrategy"

    def split(
        self, data: bytes, headers: Headers, part: Part
    ) -> tuple[SchemaId, bytes | memoryview] | None:
        return framing.split(data, headers, part, self.use_id)

    def schema(self, schema_id: SchemaId) -> WriterSchema:
        text = str(schema_id)
        with self._naming_failures():
            client = _client(self.settings)
            if text.startswith(GLOBAL):
                return _Apicurio(self.settings).by_global_id(schema_id)
            # Its own cache has no bound.
            client.clear_caches()  # type: ignore[no-untyped-call]
            if text.startswith(GUID):
                found = client.get_schema_by_guid(text.removeprefix(GUID))
            else:
                found = client.get_schema(int(schema_id))
            return _Following(
                lambda reference: (
                    client.get_version(
                        reference.subject, int(reference.version), deleted=True
                    ).schema
                )
            ).follow(schema_id, found)

    def describe(self, schema_id: SchemaId) -> Mapping[str, Any]:
        if not isinstance(schema_id, int):
            return {}
        with self._naming_failures():
            found = _client(self.settings).get_schema_versions(schema_id)
        return {"subjects": [f"{each.subject}, version {each.version}" for each in found]}

    def _subject(self, part: Part, record: str) -> str:
        """The name of a subject, as Confluent's serializers make it."""
        strategy = self.key_subject if part == "key" else self.value_subject
        if strategy == "RecordNameStrategy":
            return record
        if not self.topic:
            raise OptionError(_NO_TOPIC)
        return f"{self.topic}-{part if strategy == 'TopicNameStrategy' else record}"

    def register(self, part: Part, record: str, schema: WriterSchema) -> SchemaId:
        from confluent_kafka.schema_registry import Schema
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        subject = self._subject(part, record)
        if schema.references:
            raise SinkError(f"subject {subject}: a schema with references cannot be registered")
        wanted = Schema(schema.text, schema.kind.upper())
        place = f"schema registry {self.name}, subject {subject}"
        with self._naming_failures(SinkError):
            client = _client(self.settings)
            try:
                if self.use_latest:
                    latest = client.get_latest_version(subject)
                    if _same(latest.schema.schema_str, schema.text):
                        return _id_of(latest)
                    raise SinkError(
                        f"{place}: its latest version, {latest.version}, is another schema than "
                        f"that of the rows: set {USE_LATEST}=false, or change the table or subject"
                    )
                if self.auto_register:
                    return _id_of(client.register_schema_full_response(subject, wanted))
                return _id_of(client.lookup_schema(subject, wanted))
            except SchemaRegistryError as error:
                if error.http_status_code == _CONFLICT:
                    raise SinkError(
                        f"{place}: the schema is incompatible with an earlier version, and no row "
                        f"with it was written: change the table, the subject's compatibility, or "
                        f"the subject (several tables of one topic: set {VALUE_SUBJECT} and "
                        f"{KEY_SUBJECT}; {show(error.error_message)})"
                    ) from error
                if error.error_code in _NO_SUCH_SCHEMA:
                    raise SinkError(
                        f"{place}: the schema is not registered; set {AUTO_REGISTER}=true, or "
                        "register it first"
                    ) from error
                raise

    def frame(
        self, schema_id: SchemaId, payload: bytes, part: Part
    ) -> tuple[bytes, tuple[tuple[str, bytes | None], ...]]:
        return b"\0" + int(schema_id).to_bytes(4, "big") + payload, ()

    @contextmanager
    def _naming_failures(self, kind: type[SourceError | SinkError] = SourceError) -> Iterator[None]:
        """:raises LookupError, SourceError, SinkError, OptionError: for failures of the client."""
        from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError

        try:
            yield
        except SchemaRegistryError as error:
            raise self._refusal(kind, error) from error
        except OAuthTokenError as error:
            # Its text has the answer of the token's issuer.
            raise kind(
                f"schema registry {self.name}: no token from {ISSUER}: check it, and "
                f"{PREFIX}bearer.auth.client.id, client.secret and scope"
            ) from error
        except (DecodeError, OptionError, SourceError, SinkError):
            raise
        except Exception as error:
            if _is_of_tls(error):
                raise kind(
                    f"schema registry {self.name}: no TLS connection ({describe(error)}): set "
                    f"{CA} to the PEM file of the authority that signed its certificate"
                ) from error
            if isinstance(error, ValueError) and not isinstance(error, OSError):
                raise kind(
                    f"schema registry {self.name}: its answer is not that of a schema registry: "
                    f"check the address and path in {URL}"
                ) from error
            raise no_answer(kind, self.name, describe(error)) from error

    def _refusal(
        self, kind: type[SourceError | SinkError], error: SchemaRegistryError
    ) -> Exception:
        status, code, text = error.http_status_code, error.error_code, str(error)
        if status in (401, 403):
            given = {name for name, _ in self.settings}
            used = TOKEN_SOURCE if "bearer.auth.credentials.source" in given else USER_INFO
            what = "refuses the login" if status == 401 else "refuses access with this login"
            return kind(f"schema registry {self.name} {what} (HTTP {status}): check {used}")
        if status == 404:
            if code in _NO_SUCH_SCHEMA or (code == 404 and _UNKNOWN_TO_APICURIO.match(text)):
                return LookupError(text)
            return kind(
                f"schema registry {self.name} has no such address (HTTP 404): check the path in "
                f"{URL}; for Apicurio, it ends with /apis/ccompat/v7"
            )
        return no_answer(kind, self.name, f"HTTP {status}: {show(text)}")


def _id_of(registered: Any) -> int:
    return int(registered.schema_id)


def _same(one: str | None, other: str) -> bool:
    """Whether two schemas are equal but for blanks and the order of members."""
    return one is not None and bool(json.loads(one) == json.loads(other))


def _is_of_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


@functools.lru_cache(maxsize=16)
def _client(settings: tuple[tuple[str, Any], ...]) -> SchemaRegistryClient:
    """The client of this process, with its connections.

    :raises OptionError: for settings that the client refuses; never shows a value.
    """
    from confluent_kafka.schema_registry import SchemaRegistryClient

    try:
        return SchemaRegistryClient(dict(settings))
    except (ValueError, TypeError, OSError) as error:
        files = {name: value for name, value in settings if name.endswith(".location")}
        reason = describe(error) if isinstance(error, OSError) else type(error).__name__
        raise OptionError(
            f"options {PREFIX}…: the client of schema registries cannot use them ({reason}); "
            f"given: {', '.join(name for name, _ in settings)}"
            + "".join(f"; {PREFIX}{name} is {value}" for name, value in files.items())
        ) from error


class _Following:
    """Follows the references of one schema, within the limits; each is requested once."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self._get = get
        self._made: dict[tuple[str, str], WriterSchema] = {}
        self._bytes = 0

    def follow(self, schema_id: SchemaId, found: Any, depth: int = 0) -> WriterSchema:
        """:raises DecodeError: for a schema beyond the limits, or of an unknown kind."""
        if depth > MAX_DEPTH:
            raise DecodeError(f"schema id {schema_id}: its references nest deeper than {MAX_DEPTH}")
        text, kind = found.schema_str, _KINDS.get(found.schema_type or "AVRO")
        if kind is None or not isinstance(text, str):
            raise DecodeError(
                f"schema id {schema_id}: {show(found.schema_type)} is an unknown kind"
            )
        self._bytes += len(text)
        if self._bytes > MAX_BYTES or len(self._made) > MAX_REFERENCES:
            raise DecodeError(
                f"schema id {schema_id}: it has more than {MAX_BYTES} bytes or {MAX_REFERENCES} "
                "references"
            )
        references = []
        for each in found.references or ():
            key = str(each.subject), str(each.version)
            if key not in self._made:
                name = f"{schema_id}: {each.subject}, version {each.version}"
                self._made[key] = self.follow(name, self._get(each), depth + 1)
            references.append((str(each.name), self._made[key]))
        return WriterSchema(schema_id, kind, text, tuple(references))


@attrs.frozen
class _Found:
    """A schema of Apicurio's own API, with the fields of those of Confluent's client."""

    schema_str: str
    schema_type: str
    references: list[_Reference]


@attrs.frozen
class _Reference:
    name: str
    group: str
    subject: str
    version: str


_NATIVE: Final = "/apis/registry/v2"


@attrs.frozen
class _Apicurio:
    """Apicurio's own API, for global ids, which Confluent's does not have."""

    settings: tuple[tuple[str, Any], ...]

    def by_global_id(self, schema_id: SchemaId) -> WriterSchema:
        found = self._of(str(schema_id).removeprefix(GLOBAL))
        return _Following(self._of_reference).follow(schema_id, found)

    def _of(self, number: object) -> _Found:
        schema = self._get(f"ids/globalIds/{number}")
        references = self._get(f"ids/globalIds/{number}/references") or []
        # Avro's and Connect's own JSON differ in the name of a record.
        is_avro = not isinstance(schema, dict) or schema.get("type") not in ("object", "struct")
        return _Found(
            json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
            "AVRO" if is_avro else "JSON",
            [
                _Reference(
                    str(each["name"]),
                    str(each.get("groupId") or "default"),
                    str(each["artifactId"]),
                    str(each["version"]),
                )
                for each in references
            ],
        )

    def _of_reference(self, reference: _Reference) -> _Found:
        group, artifact, version = (
            quote(each, safe="") for each in (reference.group, reference.subject, reference.version)
        )
        path = f"groups/{group}/artifacts/{artifact}/versions/{version}/meta"
        return self._of(int(self._get(path)["globalId"]))

    def _get(self, path: str) -> Any:
        native = {**dict(self.settings)}
        native["url"] = ",".join(
            url.partition("/apis/")[0] + _NATIVE for url in native["url"].split(",")
        )
        return _client(tuple(sorted(native.items())))._rest_client.get(path)
