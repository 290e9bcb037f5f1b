"""Repair of old values that TiCDC's new architecture writes incorrectly into ``p``.

With ``only-output-updated-columns``, the new architecture (pingcap/ticdc,
``pkg/sink/codec/open/codec.go``, ``writeColumnFieldValueIfUpdated``)

- omits the name of a column whose new value is NULL, and writes the fields of its cell
  directly into ``p``: ``"p":{"t":15,"f":64,"v":"b"}``, repeatedly for several columns;
- writes null for an old value that is empty or zero.

The classic architecture (pingcap/tiflow) does neither, but its messages look the same.
So a cell without name gets a name only if exactly one column fits, and a null counts as NULL
only if nothing else is possible, or if the option ``ticdcArchitecture`` says that the classic
architecture wrote it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core.errors import DecodeError
from cdcfmt_mysql.codes import NULLABLE_FLAG
from cdcfmt_open_protocol.plans import Cells, check_cell
from cdcfmt_toolkit.wire_json import loads_exact

_EMPTY: Final[dict[int, Any]] = {
    **dict.fromkeys((10, 14), "0000-00-00"),
    11: "00:00:00",
    **dict.fromkeys((15, 249, 250, 251, 252, 253, 254), ""),
    225: "[]",
    247: 0,
    248: 0,
}
"""Type code → the value that was written as null, for types with only one such value."""

_EMPTY_IS_NULL: Final = _EMPTY.keys() | {7, 12, 246}


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object in order, including repeated names."""


def certain_cells(
    before: Cells, after: Cells, text: bytes, *, architecture: str, has_row_id: bool
) -> tuple[Cells, tuple[str, ...]]:
    """The certain cells of ``p``, and the names of columns whose old value is uncertain.

    :param text: The event's JSON.
    :param architecture: ``auto``, ``classic`` or ``new``.
    :param has_row_id: Whether there is a ``rid``, which only the classic architecture sends.
    :raises DecodeError: for cells without a name in an unknown form, or for a form that only
        the other architecture writes.
    """
    unknown: list[str] = []
    if has_row_id and architecture == "new":
        raise DecodeError(
            "only the classic architecture of TiCDC sends one; set ticdcArchitecture to auto "
            "or classic",
            field="rid",
        )
    # A column may also be named "t": then it is an object, and hides earlier cells without
    # a name only if "f" and "v" are columns, too.
    if "t" in before and (type(before["t"]) is not dict or {"f", "v"} <= before.keys()):
        nameless = type(before["t"]) is not dict
        if nameless and architecture == "classic":
            raise DecodeError(
                "a member without a column's name, as only the new architecture of TiCDC writes; "
                "set ticdcArchitecture to auto or new",
                field="p.t",
                sample=before["t"],
            )
        before, unknown = _name_cells(before, after, text)
    classic = has_row_id or architecture == "classic"
    if not classic and any(_is_null(cell) for cell in before.values()):
        before, doubtful = _judge_nulls(before, after)
        unknown += doubtful
    return before, tuple(unknown)


def _is_null(cell: Any) -> bool:
    return type(cell) is dict and cell.get("v") is None and "v" in cell


def _name_cells(before: Cells, after: Cells, data: bytes) -> tuple[dict[str, Any], list[str]]:
    members = loads_exact(data, make_object=_Members)
    named: dict[str, Any] = {}
    nameless: list[dict[str, Any]] = []
    for name, value in next(value for name, value in reversed(members) if name == "p"):
        if isinstance(value, _Members):
            cell = before[name]
            named[name] = cell if type(cell) is dict else dict(value)
            continue
        if name == "t":
            nameless.append({})
        if not nameless or name in nameless[-1] or name not in ("t", "h", "f", "v"):
            raise DecodeError("is not a column", field=f"p.{name}", sample=value)
        nameless[-1][name] = value
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for cell in nameless:
        check_cell(cell, "p")
        groups[_type_of(cell)].append(cell)
    bearers: dict[Any, list[str]] = defaultdict(list)
    for name, cell in after.items():
        if name not in named and _is_null(cell):
            check_cell(cell, f"u.{name}")
            bearers[_type_of(cell)].append(name)
    unknown: list[str] = []
    for type_, cells in groups.items():
        names = bearers[type_]
        if len(names) < len(cells):
            raise DecodeError("members without a column's name, and none can be theirs", field="p")
        # Both are in the table's order, so equal numbers match one to one.
        if len(names) == len(cells):
            named.update(zip(names, cells, strict=True))
        else:
            unknown += names
    return named, unknown


def _type_of(cell: Mapping[str, Any]) -> tuple[int, int | None, bool]:
    return cell["t"], cell.get("f"), bool(cell.get("h"))


def _judge_nulls(before: Cells, after: Cells) -> tuple[dict[str, Any], list[str]]:
    # An unchanged column proves that only-output-updated-columns is off.
    if any(
        type(cell) is dict and _is_unchanged(cell, after.get(name)) for name, cell in before.items()
    ):
        return dict(before), []
    certain: dict[str, Any] = {}
    doubtful: list[str] = []
    for name, cell in before.items():
        if _is_null(cell):
            check_cell(cell, f"p.{name}")
        if _is_null(cell) and cell["t"] in _EMPTY_IS_NULL:
            flags = cell.get("f")
            if flags is not None and not flags & NULLABLE_FLAG and cell["t"] in _EMPTY:
                certain[name] = {**cell, "v": _EMPTY[cell["t"]]}
            else:
                doubtful.append(name)
        else:
            certain[name] = cell
    return certain, doubtful


def _is_unchanged(cell: Mapping[str, Any], other: Any) -> bool:
    return type(other) is dict and "v" in cell and "v" in other and cell["v"] == other["v"]
