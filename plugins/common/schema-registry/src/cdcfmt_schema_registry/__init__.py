"""Schema registries for cdcfmt: Confluent's API, as several products speak it."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import SchemaRegistrySpec, hookimpl
from cdcfmt_schema_registry.options import CONFLUENT_OPTIONS, URL


@hookimpl
def cdcfmt_register_schema_registries() -> Iterable[SchemaRegistrySpec]:
    return [
        SchemaRegistrySpec(
            name="confluent",
            summary="Confluent Schema Registry, Karapace, Redpanda, Apicurio",
            open="cdcfmt_schema_registry.confluent:open_registry",
            options=CONFLUENT_OPTIONS,
            chosen_by=(URL,),
            api_version=1,
        )
    ]
