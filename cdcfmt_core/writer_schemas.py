"""Choose a schema registry by the given options, and open the writer schemas of its messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdcfmt_core.codec import AUTO, CodecSpec
from cdcfmt_core.encoder import Encoder
from cdcfmt_core.errors import OptionError, UnknownFormatError, join_names
from cdcfmt_core.events import Message
from cdcfmt_core.known import packages
from cdcfmt_core.options import Option
from cdcfmt_core.recognition import is_others
from cdcfmt_core.registry import Registry
from cdcfmt_core.schema_registry import PREFIX, Framed, MessageSchemas, Part, SchemaRegistry
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


def check_registers(
    codec: CodecSpec, encoder: Encoder, given: SchemaRegistry | None, registry: Registry
) -> None:
    """:raises OptionError: for a missing schema registry, and for one without use."""
    if encoder.registers_schemas and given is None:
        raise OptionError(f"{codec.name} writes with a schema registry: set {PREFIX}url")
    if given is not None and not encoder.registers_schemas:
        raise _without_use(f"with its other options {codec.name} is written", registry)


def _without_use(what: str, registry: Registry) -> OptionError:
    able = join_names(name for name, codec in registry.codecs().items() if codec.sniff_schema)
    return OptionError(
        f"options {PREFIX}…: {what} without a schema registry; leave them out, or set another "
        f"protocol or form (Avro with a schema registry: {able or 'no installed format'})"
    )


def open_writer_schemas(
    values: Mapping[str, Any], kept: Persistence | None, registry: Registry
) -> MessageSchemas | None:
    """The writer schemas of the registry of :func:`open_registry`, and those of earlier reads.

    :raises OptionError: as :func:`open_registry`, and for a registry that the format does not use.
    """
    chosen, protocol = open_registry(values, registry), values.get("protocol", AUTO)
    if chosen is not None and not any(each.sniff_schema for each in registry.codecs_of(protocol)):
        raise _without_use(f"{protocol} is read", registry)
    if chosen is None and kept is None:
        return None
    made: MessageSchemas = service("message-schemas")(chosen, kept, registry)
    return made


def split(
    schemas: MessageSchemas | None, message: Message, part: Part, codecs: Sequence[CodecSpec]
) -> Framed | None:
    """The payload with its schema; None without a framing, or if one of ``codecs`` has none.

    :raises DecodeError, SourceError: as :meth:`MessageSchemas.split`.
    """
    data: bytes | None = getattr(message, part)
    if schemas is None or data is None:
        return None
    doubt = (lambda: is_others(codecs, message)) if codecs else None
    return schemas.split(data, message.headers, part, doubt)
