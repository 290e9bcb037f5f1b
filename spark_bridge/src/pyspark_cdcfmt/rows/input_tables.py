"""Table schemas of rows to write: built once per table, then looked up.

The type map of the rows' format maps a column's source type to its type.
``typesFrom=values`` uses the types of the values instead, for rows without source types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import attrs

from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import CdcfmtError, EncodeError, join_names
from cdcfmt_core.events import Column, Image, TableSchema
from cdcfmt_core.registry import Registry
from cdcfmt_core.types import Geometry, Int, LogicalType, Unknown
from cdcfmt_toolkit.column_names import option_names
from pyspark_cdcfmt.rows.columns import ColumnCells
from pyspark_cdcfmt.rows.event_values import event_value, is_certain, own_type
from pyspark_cdcfmt.rows.policy import BadValue, Convert

_COLUMN_BYTES = 1_000
"""Bytes of a column, without its schema."""
_DEFAULT_TYPE_MAP = "mysql"


@attrs.define
class InputTable:
    """A table schema from its rows, and converters of cells to values in events."""

    schema: TableSchema
    converters: dict[str, Convert]

    def image(self, cells: Mapping[str, Any], row_name: str) -> Image:
        """The image of these cells; missing columns are absent.

        :raises EncodeError: for a column that the table lacks.
        :raises BadValue: for a value that its column's type cannot hold.
        """
        values = {}
        converters = self.converters
        name = None
        try:
            for name, value in cells.items():
                values[name] = None if value is None else converters[name](value)
        except KeyError:
            raise EncodeError(
                f"column {row_name} has a value that `columns` does not list", column=name
            ) from None
        except BadValue as error:
            error.column = name
            raise
        except EncodeError as error:
            raise error.at(column=name) from error
        return Image(values, complete=len(values) == len(converters))


class InputTables:
    """The tables of one task.

    :ivar by_values: whether ``typesFrom=values`` is set.
    :ivar keys_are_an_option: whether a key column that a table lacks is the user's mistake.
    :ivar revision: a number that grows when a column's type is changed to that of its values.
    """

    def __init__(self, registry: Registry, *, type_map: str | None, by_values: bool) -> None:
        self._registry = registry
        self._type_map = type_map
        self._by_values = by_values
        self._resolvers: dict[str | None, Callable[[str], LogicalType]] = {}
        self._tables: Cache[Any, InputTable] = Cache()
        self._own: Cache[Any, dict[str, LogicalType]] = Cache(16 << 20)
        self.keys_are_an_option = False
        self.revision = 0

    def images(
        self,
        table: tuple[str, str | None, str],
        keys: tuple[str, ...],
        columns: ColumnCells | None,
        protocol: str | None,
        cells: tuple[dict[str, Any] | None, dict[str, Any] | None],
    ) -> tuple[TableSchema, Image | None, Image | None]:
        """The schema of a row, and its images before and after.

        :raises EncodeError: for a column of unknown type.
        """
        identity: Any = (table, keys, columns, protocol)
        if columns is None:
            if not self._by_values:
                raise _untyped(cells)
            columns = _columns_of(cells, keys)
            types = (
                None if image is None else tuple((name, type(cell)) for name, cell in image.items())
                for image in cells
            )
            identity = (table, keys, tuple(types))
        for _ in range(len(columns[0]) + 1):
            found = self._tables.get(identity)
            if found is None:
                found = self._add(identity, table, keys, columns, protocol, cells)
            try:
                before, after = cells
                return (
                    found.schema,
                    None if before is None else found.image(before, "before"),
                    None if after is None else found.image(after, "after"),
                )
            except BadValue as error:
                self._widen(identity, found, self._own_types(identity, columns), error, cells)
        raise AssertionError("a column whose type does not hold its own value")

    def schema(
        self,
        table: tuple[str, str | None, str],
        keys: tuple[str, ...],
        columns: ColumnCells,
        protocol: str | None,
    ) -> TableSchema:
        """The schema of a DDL or schema event."""
        identity = (table, keys, columns, protocol)
        found = self._tables.get(identity)
        return (found or self._add(identity, table, keys, columns, protocol, ())).schema

    def _add(
        self,
        identity: Any,
        table: tuple[str, str | None, str],
        keys: tuple[str, ...],
        columns: ColumnCells,
        protocol: str | None,
        cells: tuple[Mapping[str, Any] | None, ...],
    ) -> InputTable:
        own = self._own_types(identity, columns)
        resolve = self._resolver(protocol)
        for given, names in (("key_columns", keys), ("columns", columns[0])):
            if None in names:
                raise EncodeError("a name of a column in it is NULL", column=given)
        keys = option_names("keyColumns", keys, columns[0])
        # Statements have their own keys, and truncates may have no columns.
        for name in keys if self.keys_are_an_option and cells and columns[0] else ():
            if name not in columns[0]:
                raise EncodeError(
                    "the option keyColumns names a column that the table lacks, which has "
                    f"{join_names(columns[0])}: correct it, or write tables with other keys "
                    "separately",
                    column=name,
                )
        described = []
        for name, source_type, nullable, key in zip(*columns, strict=True):
            type_ = own.get(name) or (resolve(source_type) if source_type else Unknown(""))
            if isinstance(type_, Unknown) and self._by_values:
                values = (None if image is None else image.get(name) for image in cells)
                known = next((value for value in values if value is not None), None)
                type_ = type_ if known is None else own_type(known)
            described.append(Column(name, source_type, type_, nullable, bool(key) or name in keys))
        database, schema, name = table
        converters = {column.name: self._converter(column.type) for column in described}
        read = TableSchema(database, name, tuple(described), keys, schema)
        found = InputTable(read, converters)
        return self._tables.add(identity, found, table_size(read, _COLUMN_BYTES))

    def _own_types(self, identity: Any, columns: ColumnCells) -> dict[str, LogicalType]:
        own = self._own.get(identity)
        return self._own.add(identity, {}, 200 * len(columns[0])) if own is None else own

    def _converter(self, type_: LogicalType) -> Convert:
        if not isinstance(type_, Unknown):
            return event_value(type_)

        def keep(value: Any) -> Any:
            if self._by_values or is_certain(value):
                raise BadValue("the type is unknown")
            return value

        return keep

    def _widen(
        self,
        identity: Any,
        found: InputTable,
        own: dict[str, LogicalType],
        error: BadValue,
        cells: tuple[Mapping[str, Any] | None, ...],
    ) -> None:
        """Use the type of a value instead of the column's type, if the latter must be wrong.

        :raises EncodeError: if the value's type is not usable.
        """
        name = error.column
        if name is None or name in own:
            raise EncodeError(str(error), column=name) from error
        (known,) = (column for column in found.schema.columns if column.name == name)
        for image in cells:
            value = None if image is None else image.get(name)
            if value is None:
                continue
            try:
                found.converters[name](value)
            except BadValue:
                if not self._is_wider(known.type, value):
                    raise EncodeError(
                        f"{error}, and its source type is {known.source_type!r}", column=name
                    ) from error
                own[name] = own_type(value)
        self.revision += 1
        self._tables.discard(identity)

    def _is_wider(self, type_: LogicalType, value: Any) -> bool:
        """Whether the value needs a wider type: formats may type each value (Aliyun DTS)."""
        if isinstance(type_, Unknown):
            return self._by_values or is_certain(value)
        if isinstance(type_, Int):
            return type(value) in (int, Decimal)
        return isinstance(type_, Geometry) and type(value) is str

    def _resolver(self, protocol: str | None) -> Callable[[str], LogicalType]:
        resolve = self._resolvers.get(protocol)
        if resolve is None:
            name = self._type_map
            if name is None:
                name = _DEFAULT_TYPE_MAP
                if protocol is not None:
                    try:
                        name = self._registry.get_codec(protocol).type_map
                    except CdcfmtError as error:
                        raise EncodeError(
                            f"the types of rows that were read as {protocol} are unknown: "
                            f"{error}; install it, or set typeMap"
                        ) from error
            resolve = self._resolvers[protocol] = self._registry.get_type_map(name)
        return resolve


def _untyped(cells: tuple[Mapping[str, Any] | None, ...]) -> EncodeError:
    column = next((name for image in cells if image is not None for name in image), None)
    return EncodeError(
        "the column's type is unknown, as the row has no `columns`: read with "
        "includeColumns=true, or set typesFrom=values to write the types of the values",
        column=column,
    )


def _columns_of(cells: tuple[Mapping[str, Any] | None, ...], keys: tuple[str, ...]) -> ColumnCells:
    names = tuple(dict.fromkeys(name for image in reversed(cells) if image for name in image))
    nothing = (None,) * len(names)
    return names, ("",) * len(names), nothing, tuple(name in keys for name in names)
