"""Choose a schema registry by the given options, and open the writer schemas of its messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cdcfmt_core.errors import OptionError, UnknownFormatError, join_names
from cdcfmt_core.events import Message
from cdcfmt_core.known import packages
from cdcfmt_core.options import Option
from cdcfmt_core.registry import Registry
from cdcfmt_core.schema_registry import PREFIX, MessageSchemas, SchemaRegistry, WriterSchema
from cdcfmt_core.schemas.records import Persistence
from cdcfmt_core.services import service


def registry_options(names: Iterable[str], registry: Registry) -> list[Option]:
    """The options of all kinds of schema registries, if one of the names is such an option.

    :raises UnknownFormatError: if no kind is installed; names the package.
    """
    if not any(name.lower().startswith(PREFIX) for name in names):
        return []
    kinds = registry.schema_registries().values()
    if not kinds:
        package = min(packages("schema_registries").values())
        raise UnknownFormatError(
            f"options {PREFIX}…, on driver and executors: pip install {package}"
        )
    return list({option.name: option for kind in kinds for option in kind.options}.values())


def open_registry(values: Mapping[str, Any], registry: Registry) -> SchemaRegistry | None:
    """The schema registry that options choose, without a connection; None if they choose none.

    :raises OptionError: for options of two kinds, or none that chooses one.
    """
    given = {name for name, value in values.items() if name.startswith(PREFIX) and value}
    if not given:
        return None
    kinds = registry.schema_registries().values()
    chosen = [kind for kind in kinds if not given.isdisjoint(kind.chosen_by)]
    if len(chosen) == 1:
        (kind,) = chosen
        return kind.open({option.name: values[option.name] for option in kind.options})
    choosing = join_names(name for kind in chosen or kinds for name in kind.chosen_by)
    raise OptionError(f"options {PREFIX}…: give exactly one of {choosing}")


def check_registers(name: str, needed: bool, given: SchemaRegistry | None) -> None:
    """:raises OptionError: for a missing schema registry, and for one without use."""
    if needed and given is None:
        raise OptionError(f"{name} writes with a schema registry: set {PREFIX}url")
    if given is not None and not needed:
        raise OptionError(
            f"options {PREFIX}…: with its other options {name} needs no schema registry; leave "
            "them out, or write its Avro"
        )


def open_writer_schemas(
    values: Mapping[str, Any], kept: Persistence | None, registry: Registry
) -> MessageSchemas | None:
    """The writer schemas of the registry of :func:`open_registry`, and those of earlier reads."""
    chosen = open_registry(values, registry)
    if chosen is None and kept is None:
        return None
    made: MessageSchemas = service("message-schemas")(chosen, kept, registry)
    return made


def schema_of(schemas: MessageSchemas | None, message: Message) -> WriterSchema | None:
    """The writer schema of a message's value; None if it has no framing.

    :raises DecodeError, SourceError: as :meth:`MessageSchemas.split`.
    """
    if schemas is None or message.value is None:
        return None
    framed = schemas.split(message.value, message.headers, "value")
    return None if framed is None else framed.schema
