"""First-party formats, transports and type maps, whether installed or not (``known.toml``)."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["formats", "transports", "schema_registries", "type_maps", "services"]


def packages(kind: Kind) -> Mapping[str, str]:
    """The package of each name."""
    return {name: each["package"] for name, each in _read()[kind].items()}


def formats_with_schemas() -> list[str]:
    """The formats whose messages have a field for the schema in ``database.schema.table``."""
    return [name for name, each in _read()["formats"].items() if each.get("has_schemas")]


@functools.cache
def _read() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
