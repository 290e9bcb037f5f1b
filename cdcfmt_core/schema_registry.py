"""The plugin API for schema registries, which hold the schemas that messages were written with.

A framed message has the id of its writer schema in front of it or in its headers.  A decoder gets
:class:`MessageSchemas` in its context, and knows neither framings nor registries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from cdcfmt_core.lazy import function_of
from cdcfmt_core.options import Option, Versioned, check_declared

PREFIX = "schema.registry."
"""The prefix of every option of a registry."""
TOPIC = f"{PREFIX}topic"
"""The option for the topic of subjects; who writes to a topic sets it."""

Part: TypeAlias = Literal["key", "value"]
SchemaId: TypeAlias = int | str
"""A number, or text where ids are something else (a UUID) or numbers of another kind."""
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@attrs.frozen(cache_hash=True)
class WriterSchema:
    """A schema that messages were written with, the same object for each message of its id.

    - ``id``: unlike that of every other schema of the registry.
    - ``references``: names that ``text`` uses without defining them, each with its schema.
    """

    id: SchemaId
    kind: Literal["avro", "json", "protobuf"]
    text: str = attrs.field(repr=False)
    references: tuple[tuple[str, WriterSchema], ...] = attrs.field(default=(), repr=False)


@attrs.frozen
class Framed:
    """A key or value without its framing, and the schema that it was written with."""

    schema: WriterSchema
    payload: bytes | memoryview


class MessageSchemas(Protocol):
    """The writer schemas of messages, for decoders."""

    def split(
        self, data: bytes, headers: Headers, part: Part, is_others: Callable[[], bool] | None = None
    ) -> Framed | None:
        """The payload with its schema; None without a framing, or for bytes that ``is_others``.

        :raises DecodeError: for an id that the registry does not know, and a damaged framing.
        :raises SourceError: if the registry does not answer or refuses the login: not the
            message's fault, so it ends the read.
        """


class SchemaRegistry(Protocol):
    """A registry, opened without a connection; it can be pickled, and no text shows a secret.

    - ``name``: names the registry in texts and in kept schemas: its address, without secrets.
    """

    @property
    def name(self) -> str: ...

    def split(
        self, data: bytes, headers: Headers, part: Part
    ) -> tuple[SchemaId, bytes | memoryview] | None:
        """The id of the writer schema, and the payload; None for data without its framing.

        :raises DecodeError: for a damaged framing.
        """

    def schema(self, schema_id: SchemaId) -> WriterSchema:
        """The schema of an id, with its references.

        :raises LookupError: if the registry does not know the id.
        :raises SourceError: if it does not answer or refuses the login; names the option.
        """

    def describe(self, schema_id: SchemaId) -> Mapping[str, Any]:
        """Subjects and versions of a schema, for people; raises as :meth:`schema`."""

    def register(self, part: Part, record: str, schema: WriterSchema) -> SchemaId:
        """The id of a schema; ``record``: its full name.  Registered if the options allow that.

        :raises SinkError: if it is incompatible with its subject's other schemas, or for no answer.
        :raises OptionError: if the subject's name needs a topic, and none is given.
        """

    def frame(
        self, schema_id: SchemaId, payload: bytes, part: Part
    ) -> tuple[bytes, tuple[tuple[str, bytes | None], ...]]:
        """The framed payload, and headers; the inverse of :meth:`split`."""


@attrs.frozen
class SchemaRegistrySpec(Versioned):
    """A kind of schema registry: its name, its options and how to open it.

    - ``options``: with their full names, such as ``schema.registry.url``.
    - ``chosen_by``: options of which one is enough to choose this kind.
    - ``open(values)``: ``values`` are the validated options by declared name.  Without one of
      ``chosen_by`` it only splits: schemas then come from ``schemaStore``.
    """

    name: str
    summary: str
    open: Callable[[Mapping[str, Any]], SchemaRegistry] = attrs.field(converter=function_of)
    options: tuple[Option, ...]
    chosen_by: tuple[str, ...]
    api_version: int = attrs.field(kw_only=True)

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for invalid names and options."""
        owner = f"schema registry {self.name}"
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"{owner}: use lower-case letters, digits and dashes between")
        check_declared(self.options, owner)
        names = {option.name for option in self.options}
        if wrong := sorted(name for name in names if not name.startswith(PREFIX)):
            raise ValueError(f"{owner}: options begin with {PREFIX}, unlike {', '.join(wrong)}")
        if not self.chosen_by or not names.issuperset(self.chosen_by):
            raise ValueError(f"{owner}: chosen_by must name one or more of its options")
