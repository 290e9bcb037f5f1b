"""The writer schemas of framed messages: from a schema registry, and kept for replays.

A schema is requested once per process.  With a schema store it is kept there too, so that a replay
needs no registry, and a message whose schema was deleted can still be read.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.errors import DecodeError, SourceError
from cdcfmt_core.registry import Registry
from cdcfmt_core.schema_registry import (
    Framed,
    Headers,
    MessageSchemas,
    Part,
    SchemaId,
    SchemaRegistry,
    WriterSchema,
)
from cdcfmt_core.schemas.records import Persistence

_MAX_CACHE_BYTES: Final = 64 << 20
_SECONDS_OF_UNKNOWN: Final = 30.0
"""How long an id is unknown before the registry is asked again: another message may have it."""
_REFERENCE_BYTES: Final = 100
_DEPTH: Final = 50

_schemas: Cache[tuple[str, str, SchemaId], WriterSchema] = Cache(_MAX_CACHE_BYTES)
"""By registry, schema store and id: each store is to have the schemas that are read with it."""
_unknown: Cache[tuple[str, SchemaId], float] = Cache(1 << 20)
_requesting = threading.Lock()


def forget() -> None:
    """Forget the schemas of this process; they are requested again."""
    with _requesting:
        _schemas.clear()
        _unknown.clear()


def open_message_schemas(
    chosen: SchemaRegistry | None, kept: Persistence | None, registry: Registry
) -> MessageSchemas | None:
    """The schemas of a registry, and those that a schema store keeps of one.

    :param chosen: None: only kept schemas, of any kind of registry.
    """
    if chosen is not None:
        return RegisteredSchemas(chosen, kept)
    kinds = registry.schema_registries().values()
    if kept is None or not kinds:
        return None
    nameless = [kind.open({each.name: each.default for each in kind.options}) for kind in kinds]
    return KeptSchemas(tuple(RegisteredSchemas(each, kept, False) for each in nameless))


@attrs.frozen
class RegisteredSchemas(MessageSchemas):
    """The schemas of one registry.

    - ``kept``: where schemas are kept for replays, or None.
    - ``answers``: whether the registry can be asked.
    """

    registry: SchemaRegistry
    kept: Persistence | None = None
    answers: bool = True
    _place: tuple[str, str] = attrs.field(init=False, repr=False, eq=False)

    @_place.default
    def _place_of_both(self) -> tuple[str, str]:
        return self.registry.name, repr(self.kept)

    def split(
        self, data: bytes, headers: Headers, part: Part, is_others: Callable[[], bool] | None = None
    ) -> Framed | None:
        found = self.registry.split(data, headers, part)
        if found is None:
            return None
        schema_id, payload = found
        # Ids in headers and in JSON are certain; a byte is not.
        is_certain = payload is data or data[:1] == b"{"
        if is_others is not None and not is_certain and is_others():
            return None
        schema = _schemas.get((*self._place, schema_id))
        return Framed(schema or self.find(schema_id), payload)

    def find(self, schema_id: SchemaId) -> WriterSchema:
        """The schema of an id.

        :raises DecodeError, SourceError: as :meth:`split`.
        """
        key = *self._place, schema_id
        with _requesting:
            # Streams of one driver ask concurrently.
            schema = _schemas.get(key)
            if schema is None:
                schema = self._kept(schema_id) or self._request(schema_id)
                _schemas.add(key, schema, schema_size(schema))
            return schema

    def _request(self, schema_id: SchemaId) -> WriterSchema:
        name = self.registry.name
        if not self.answers:
            raise DecodeError(
                f"schema id {schema_id}: it is not in the schema store; set the address of the "
                "schema registry (schema.registry.url) to look it up"
            )
        since = _unknown.get((name, schema_id))
        if since is None or time.monotonic() - since > _SECONDS_OF_UNKNOWN:
            try:
                schema = self.registry.schema(schema_id)
            except LookupError:
                _unknown.add((name, schema_id), time.monotonic(), text_size(name, str(schema_id)))
            else:
                if self.kept is not None:
                    self.kept.keep(_folder(schema_id), _to_json(name, schema))
                return schema
        raise DecodeError(
            f"schema id {schema_id} is not in the schema registry {name}: it was deleted, or the "
            "message was written with another registry"
        )

    def _kept(self, schema_id: SchemaId) -> WriterSchema | None:
        if self.kept is None:
            return None
        found = {}
        for data in self.kept.kept(_folder(schema_id)):
            try:
                name, schema = _from_json(data)
            except ValueError as error:
                # Not the message's fault.
                raise SourceError(
                    f"schema id {schema_id}: the schema store has a damaged writer schema "
                    f"({error}): delete its file in {_folder(schema_id)}"
                ) from error
            if not self.answers or name == self.registry.name:
                found[schema] = name
        if len(found) > 1:
            raise DecodeError(
                f"schema id {schema_id}: the schema store has schemas of several registries with "
                f"this id ({', '.join(sorted(found.values()))}): set schema.registry.url"
            )
        return next(iter(found), None)


@attrs.frozen
class KeptSchemas(MessageSchemas):
    """The schemas that a store keeps, of whichever kind of registry."""

    kinds: Sequence[RegisteredSchemas]

    def split(
        self, data: bytes, headers: Headers, part: Part, is_others: Callable[[], bool] | None = None
    ) -> Framed | None:
        for each in self.kinds:
            if (found := each.split(data, headers, part, is_others)) is not None:
                return found
        return None


def schema_size(schema: WriterSchema) -> int:
    """Approximate bytes of a schema with its references, each counted once."""
    distinct = {id(each): each for each in _with_references(schema)}
    return sum(text_size(each.text) + _REFERENCE_BYTES for each in distinct.values())


def _with_references(schema: WriterSchema) -> Iterator[WriterSchema]:
    waiting, seen = [schema], set()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += (reference for _, reference in each.references)


def _folder(schema_id: SchemaId) -> str:
    return f"_writer-schemas/{''.join(c if c.isalnum() else '-' for c in str(schema_id))}"


def _to_json(registry: str, schema: WriterSchema) -> bytes:
    # Each schema stands once: several may refer to one.
    every = list({id(each): each for each in _with_references(schema)}.values())
    places = {id(each): place for place, each in enumerate(every)}
    schemas = [
        {
            "id": each.id,
            "kind": each.kind,
            "schema": each.text,
            "references": [[name, places[id(used)]] for name, used in each.references],
        }
        for each in every
    ]
    return json.dumps({"registry": registry, "schemas": schemas}).encode()


def _from_json(data: bytes) -> tuple[str, WriterSchema]:
    """:raises ValueError: for anything but what ``_to_json`` writes."""
    try:
        wire = json.loads(data)
        schemas: list[dict[str, Any]] = wire["schemas"]
        made: dict[int, WriterSchema] = {}

        def make(place: int, depth: int) -> WriterSchema:
            if depth > _DEPTH:
                raise ValueError("references nest too deep")
            if place not in made:
                each = schemas[place]
                references = tuple(
                    (str(name), make(used, depth + 1)) for name, used in each["references"]
                )
                made[place] = WriterSchema(each["id"], each["kind"], each["schema"], references)
            return made[place]

        return str(wire["registry"]), make(0, 0)
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"not a kept writer schema: {error}") from error
