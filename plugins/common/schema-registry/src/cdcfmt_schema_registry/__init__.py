"""Schema registries for cdcfmt: Confluent's API, as several products speak it, and AWS Glue."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import SchemaRegistrySpec, hookimpl
from cdcfmt_schema_registry.options import CONFLUENT_OPTIONS, GLUE_OPTIONS, REGION, URL


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
        ),
        SchemaRegistrySpec(
            name="glue",
            summary="AWS Glue's schema registry",
            open="cdcfmt_schema_registry.glue:open_registry",
            options=GLUE_OPTIONS,
            chosen_by=(REGION,),
            api_version=1,
        ),
    ]
