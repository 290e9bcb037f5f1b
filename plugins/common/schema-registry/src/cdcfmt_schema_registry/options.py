"""Options: those of Confluent's Python client, with the prefix ``schema.registry.``."""

from __future__ import annotations

from typing import Final

from cdcfmt_core import Option
from cdcfmt_core.errors import SinkError, SourceError
from cdcfmt_core.schema_registry import PREFIX, TOPIC

URL: Final = f"{PREFIX}url"
USER_INFO: Final = f"{PREFIX}basic.auth.user.info"
TOKEN: Final = f"{PREFIX}bearer.auth.token"
TOKEN_SOURCE: Final = f"{PREFIX}bearer.auth.credentials.source"
ISSUER: Final = f"{PREFIX}bearer.auth.issuer.endpoint.url"
CA: Final = f"{PREFIX}ssl.ca.location"
RETRIES: Final = f"{PREFIX}max.retries"
TIMEOUT: Final = f"{PREFIX}timeout"
REGION: Final = f"{PREFIX}glue.region"
ENDPOINT: Final = f"{PREFIX}glue.endpoint.url"
PROFILE: Final = f"{PREFIX}glue.profile"
USE_ID: Final = f"{PREFIX}use.id"
AUTO_REGISTER: Final = f"{PREFIX}auto.register.schemas"
USE_LATEST: Final = f"{PREFIX}use.latest.version"
KEY_SUBJECT: Final = f"{PREFIX}key.subject.name.strategy"
VALUE_SUBJECT: Final = f"{PREFIX}value.subject.name.strategy"

_PEM = "this client is not Java: give PEM files as schema.registry.ssl.ca.location, "
_PEM += "ssl.certificate.location and ssl.key.location"
_OF_JAVA = {
    "basic.auth.credentials.source": f"leave it out: {USER_INFO} is enough",
    **{
        f"ssl.{store}.{what}": _PEM
        for store in ("truststore", "keystore")
        for what in ("location", "password", "type")
    },
    "bearer.auth.custom.provider.function": "a function cannot be an option",
}

_STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")

_WAITING: Final = (
    Option(
        name=TIMEOUT,
        type="int",
        default=10,
        minimum=1,
        help="Seconds to wait for each answer.",
    ),
    Option(
        name=RETRIES,
        type="int",
        default=8,
        minimum=0,
        help="How often a request without an answer is repeated before the read or write ends.",
    ),
)

CONFLUENT_OPTIONS: Final = (
    Option(
        name=URL,
        help="Address of the schema registry, several separated by commas. Apicurio: its address "
        "with `/apis/ccompat/v7`.",
        instead={f"{PREFIX}{name}": text for name, text in _OF_JAVA.items()},
    ),
    Option(name=USER_INFO, hidden=True, help="User and password as `user:password`."),
    Option(name=TOKEN, hidden=True, help="A token for bearer authentication."),
    Option(
        name=TOKEN_SOURCE,
        type="choice",
        choices=("STATIC_TOKEN", "OAUTHBEARER", "OAUTHBEARER_AZURE_IMDS"),
        help="Where tokens come from; by default chosen by the other options.",
    ),
    Option(name=ISSUER, help="OAuth: the address that issues tokens."),
    Option(
        name=f"{PREFIX}bearer.auth.issuer.endpoint.query",
        help="OAuth of Azure's instance metadata: the query.",
    ),
    Option(name=f"{PREFIX}bearer.auth.client.id", help="OAuth: the client's id."),
    Option(
        name=f"{PREFIX}bearer.auth.client.secret", hidden=True, help="OAuth: the client's secret."
    ),
    Option(name=f"{PREFIX}bearer.auth.scope", help="OAuth: the scope."),
    Option(
        name=f"{PREFIX}bearer.auth.logical.cluster",
        help="Confluent Cloud: the registry's cluster, such as `lsrc-…`, for bearer tokens.",
    ),
    Option(
        name=f"{PREFIX}bearer.auth.identity.pool.id", help="Confluent Cloud: the identity pool."
    ),
    Option(
        name=CA,
        help="PEM file of the authorities that sign the registry's certificate; by default "
        "those of certifi.",
    ),
    Option(name=f"{PREFIX}ssl.certificate.location", help="PEM file of the client's certificate."),
    Option(name=f"{PREFIX}ssl.key.location", help="PEM file of the client's private key."),
    Option(
        name=f"{PREFIX}ssl.key.password", hidden=True, help="Password of the client's private key."
    ),
    Option(name=f"{PREFIX}proxy", hidden=True, help="Proxy, such as `http://host:8030`."),
    *_WAITING,
    Option(
        name=f"{PREFIX}retries.wait.ms",
        type="int",
        default=1000,
        minimum=1,
        help="Maximum milliseconds before the first repetition; doubled before each further one.",
    ),
    Option(
        name=f"{PREFIX}retries.max.wait.ms",
        type="int",
        default=20_000,
        minimum=1,
        help="Maximum milliseconds before a repetition.",
    ),
    Option(
        name=USE_ID,
        type="choice",
        choices=("auto", "contentId", "globalId"),
        default="auto",
        help="Apicurio: which of its ids stands before a payload (`apicurio.registry.use-id` of "
        "the converter); `auto`: in 4 bytes the content id, which is the id of all other "
        "registries, in 8 bytes the global id. Headers name the kind of their id.",
    ),
    Option(
        name=AUTO_REGISTER,
        type="bool",
        default=True,
        help="Writing: register schemas; `false`: they must be registered already.",
    ),
    Option(
        name=USE_LATEST,
        type="bool",
        default=False,
        help="Writing: the latest version of a subject must be the schema of the rows; nothing "
        "is registered.",
    ),
    Option(
        name=VALUE_SUBJECT,
        type="choice",
        choices=_STRATEGIES,
        default=_STRATEGIES[0],
        help="Writing: the subject of a value's schema: `TOPIC-value`, its record's full name, "
        "or `TOPIC-RECORD`. A topic of several tables needs the record's name in it.",
    ),
    Option(
        name=KEY_SUBJECT,
        type="choice",
        choices=_STRATEGIES,
        default=_STRATEGIES[0],
        help="Writing: the same for a key's schema, `TOPIC-key`.",
    ),
    Option(
        name=TOPIC,
        help="Writing: the topic in the names of subjects. Default: the topic that is written; "
        "files need it.",
    ),
)

GLUE_OPTIONS: Final = (
    Option(name=REGION, help="AWS Glue: the region of the registry, such as `eu-central-1`."),
    Option(name=ENDPOINT, help="AWS Glue: another address, such as that of a VPC endpoint."),
    Option(name=PROFILE, help="AWS Glue: the profile of the credentials."),
    *_WAITING,
)


def no_answer(
    kind: type[SourceError | SinkError], registry: str, reason: str
) -> SourceError | SinkError:
    """The error of a read or write for a registry that was asked in vain."""
    what = "write" if kind is SinkError else "read"
    return kind(
        f"schema registry {registry} does not answer ({reason}). Nothing is lost: start the {what} "
        f"again when it does; {RETRIES} and {TIMEOUT} set how long to wait"
    )
