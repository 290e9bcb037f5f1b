"""Names of source tables, and of targets in a catalog or by path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from string import Formatter
from typing import TypeAlias

from cdcfmt_core.errors import OptionError

TableName: TypeAlias = "tuple[str, str | None, str]"
"""Database, schema and table, as in the columns of events."""

FIELDS = ("database", "schema", "table")
DELTA_LOG = "_delta_log"
"""The folder in a table's folder that makes it a table."""

MAX_NAME_BYTES = 255
_PLAIN = re.compile(r"[^.`\s]+")
_REFUSED = re.compile(r"[^A-Za-z0-9_]")


def quote(name: str) -> str:
    """A name as a SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A string as a SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def table_text(name: TableName) -> str:
    """A source table's name in the syntax of the option ``table``."""
    return ".".join(part if _PLAIN.fullmatch(part) else quote(part) for part in name if part)


def check_pattern(into: str) -> None:
    """Check a pattern for target names.

    :raises OptionError: for an unpaired brace, an unknown field, or a missing field ``table``.
    """
    try:
        fields = [
            field + (f"!{conversion}" if conversion else "") + (f":{how}" if how else "")
            for _, field, how, conversion in Formatter().parse(into)
            if field is not None
        ]
    except ValueError as error:
        raise OptionError(f"option into: {into!r}: {error}") from error
    if unknown := [field for field in fields if field not in FIELDS]:
        raise OptionError(
            f"option into: {into!r} has the field {unknown[0]!r}, not one of {FIELDS}"
        )
    if "table" not in fields:
        raise OptionError(f"option into: {into!r} has no field {{table}}")


def has_field(into: str, field: str) -> bool:
    """Whether a pattern for target names has this field."""
    return any(name == field for _, name, *_ in Formatter().parse(into))


def target_of(into: str, name: TableName) -> str:
    """The target of a source table, as a SQL identifier.

    Characters that a catalog rejects become ``_``, and the name gets a hash as its suffix.
    """
    parts = dict(zip(FIELDS, name, strict=True))
    filled = {field: safe_name(part or "") for field, part in parts.items()}
    if "/" in into:
        return f"delta.{quote(into.format(**filled))}"
    return ".".join(quote(part) for part in into.format(**filled).split("."))


def refused_target(target: str, own: Mapping[str, str]) -> str | None:
    """The reason why no table can have this target; None if one can.

    :param own: the folders of sync, by option.
    """
    path = path_of(target)
    if path is None:
        # A schema's folder ends in ``.db``.
        parts = [part.strip("`") + ".db" for part in target.split(".")[:-1]]
        parts.append(target.rpartition(".")[2].strip("`"))
        if ".db" in parts:
            return "its name lacks a part that the option into has: set into without that field"
    else:
        parts = path.split("/")
        if DELTA_LOG in map(str.lower, parts):
            return f"{DELTA_LOG} is the folder of Delta's own log"
        for option, folder in own.items():
            first, second = sorted((_folder(path), _folder(folder)), key=len)
            if second.startswith(first):
                return f"the folder of the option {option} would be in the target, or around it"
    longest = max(len(part.encode("utf-8", "surrogatepass")) for part in parts)
    if longest > MAX_NAME_BYTES:
        return f"its name has {longest} bytes, and file systems take {MAX_NAME_BYTES}"
    return None


def _folder(path: str) -> str:
    """A path to compare with others: on some file systems case does not matter."""
    return path.rstrip("/").casefold() + "/"


def path_of(table: str) -> str | None:
    """The path of a table by path; None for a catalog table."""
    if not table.startswith("delta.`"):
        return None
    return table.removeprefix("delta.`").removesuffix("`").replace("``", "`")


def safe_name(name: str) -> str:
    """A name of letters, digits and underscores, different for each given name."""
    plain = _REFUSED.sub("_", name)
    if plain == name:
        return name
    data = name.encode("utf-8", "surrogatepass")
    return f"{plain}_{hashlib.sha256(data).hexdigest()[:6]}"
