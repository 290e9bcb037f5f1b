"""Conversion of changes rows to events, the inverse of :mod:`pyspark_cdcfmt.rows.change_rows`.

The two rows of an update become one event.  They are paired by their equal ``_sequence`` (without
its part), and by the key if the sequence has no offset; the preimage is kept until its postimage
arrives, perhaps in a later batch.  Without ``_sequence``, adjacent rows are pairs.  A
postimage without a preimage is an upsert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.column_names import spelled
from cdcfmt_core.errors import DecodeError, EncodeError, OptionError, join_names
from cdcfmt_core.events import Column, Corrupt, Image, Op, RowChange, TableSchema
from cdcfmt_core.filters import split_name
from cdcfmt_core.texts import qualified
from cdcfmt_core.types import LogicalType
from cdcfmt_toolkit.column_names import option_names
from pyspark_cdcfmt.rows.columns import (
    array_cells,
    check_columns,
    check_spelling,
    check_twice,
    own_cells,
    variant_cell,
)
from pyspark_cdcfmt.rows.event_values import cell_converter, json_document
from pyspark_cdcfmt.rows.policy import BadValue, Convert
from pyspark_cdcfmt.rows.row_schemas import METADATA, RESCUED, metadata_fields
from pyspark_cdcfmt.rows.rows_to_events import InputEvent
from pyspark_cdcfmt.rows.types import logical_type
from pyspark_cdcfmt.write_options import WriteOptions

MAX_WAITING = 10_000
"""Maximum number of preimages that wait for their postimages."""

FIRST_TSO = 1_000_000_000_000 << 18
"""The TSO of September 2001; a smaller number is not a commit_ts."""
_OPS: dict[str, Op] = {"insert": "insert", "delete": "delete", "truncate": "truncate"}


def check_changes(schema: spark.StructType, options: WriteOptions) -> None:
    """:raises OptionError: for a column that changes do not have, or that is missing."""
    added = {field.name: field.dataType for field in metadata_fields(options)}
    own = [field for field in schema.fields if field.name not in added]
    check_spelling([field.name for field in own], added)
    check_columns(
        spark.StructType([field for field in schema.fields if field.name in added]),
        added,
        (options["metadataPrefix"] + "change_type",),
        "with the option table rows are changes (metadataPrefix renames the added columns)",
    )
    declared = options.column_types
    for field in own:
        if logical_type(field.dataType) is None:
            raise OptionError(
                f"column {field.name}: {field.dataType.simpleString()} is not supported as a type "
                "of a table's columns; cast it"
            )
    names = [field.name for field in own]
    check_twice(names)
    if options["keyColumns"] is None:
        raise OptionError(
            "option keyColumns: list the columns that identify a row ([] if the table has none)"
        )
    for option, given in (("keyColumns", options["keyColumns"]), ("columnTypes", declared)):
        for name in option_names(option, given, names):
            if name not in names:
                raise OptionError(
                    f"option {option}: there is no column {name} ({join_names(names)})"
                )


class ChangeInput:
    """Converts record batches to events; :func:`check_changes` has checked the schema."""

    def __init__(
        self,
        schema: spark.StructType,
        options: WriteOptions,
        resolve_type: Callable[[str], LogicalType],
    ) -> None:
        prefix = options["metadataPrefix"]
        self._added = {name: prefix + name for name in METADATA if prefix + name in schema.names}
        added = set(self._added.values())
        self._types = {field.name: field.dataType for field in schema.fields}
        self.table, self._columns = _table(
            [field for field in schema.fields if field.name not in added], options, resolve_type
        )
        self._declared = {column.name: column.source_type for column in self.table.columns}
        self.json_texts = frozenset(
            name for name, convert in self._columns.items() if convert is json_document
        )
        self.waiting: dict[Any, tuple[dict[str, Any], Image]] = {}
        self._has_sequence = "sequence" in self._added

    def events(self, batches: Iterable[pa.RecordBatch]) -> Iterator[InputEvent]:
        """The events of the rows, each at the place of its last row.

        :raises EncodeError: for an invalid row, and for a preimage without a postimage.
        """
        for batch in batches:
            added = {
                name: array_cells(batch.column(column), self._types[column])
                for name, column in self._added.items()
            }
            own, unconverted = self._convert(batch)
            for place, row in enumerate(own):
                metadata = {name: column[place] for name, column in added.items()}
                try:
                    event = self._event(metadata, row, unconverted)
                except EncodeError as error:
                    raise self._located(error, metadata) from error
                if event is not None:
                    yield event

    def _convert(self, batch: pa.RecordBatch) -> tuple[Iterable[tuple[Any, ...]], list[str]]:
        """The values of each row's own columns, and the columns with an unconvertible value."""
        columns, unconverted = [], []
        for name, convert in self._columns.items():
            try:
                column = own_cells(batch.column(name), self._types[name])
            except EncodeError as error:
                raise self._located(error.at(column=name), {}) from error
            if convert is not None:
                try:
                    column = [None if value is None else convert(value) for value in column]
                except (BadValue, EncodeError):
                    # The error is raised later, at its row.
                    unconverted.append(name)
            columns.append(column)
        return zip(*columns, strict=True) if columns else [()] * batch.num_rows, unconverted

    def flush(self) -> Iterator[InputEvent]:
        """Refuse a preimage without its postimage at the end.

        :raises EncodeError: if a preimage has no postimage in this task.
        """
        for metadata, _ in self.waiting.values():
            raise self._located(self._alone(), metadata)
        return iter(())

    def _event(
        self, metadata: dict[str, Any], row: tuple[Any, ...], unconverted: list[str]
    ) -> InputEvent | None:
        change_type = metadata["change_type"]
        if metadata.get("corrupt_record") is not None:
            reason = metadata["corrupt_record"].get("reason")
            return InputEvent(Corrupt(DecodeError(reason or "a bad row")), (None, None, None))
        if metadata.get(RESCUED) is not None and variant_cell(metadata[RESCUED]):
            raise EncodeError("the row has rescued values, which would be lost", column=RESCUED)
        if change_type == "update_preimage":
            self._wait(metadata, self._image(metadata, row, unconverted))
            return None
        before: Image | None = None
        if change_type == "update_postimage":
            image = self._image(metadata, row, unconverted)
            waiting = self.waiting.pop(self._pair_of(metadata, image), None)
            before = None if waiting is None else waiting[1]
        if not self._has_sequence and self.waiting:
            raise self._alone()
        if change_type == "update_postimage":
            op: Op = "update" if before is not None else "upsert"
            return self._change(op, metadata, before, image)
        if change_type not in _OPS:
            raise EncodeError(
                f"{change_type!r} is not one of {join_names([*_OPS, 'update_preimage'])}, "
                "update_postimage",
                column=self._added["change_type"],
            )
        own = None if change_type == "truncate" else self._image(metadata, row, unconverted)
        if change_type == "insert":
            return self._change("insert", metadata, None, own)
        return self._change(_OPS[change_type], metadata, own, None)

    def _change(
        self, op: Op, metadata: dict[str, Any], before: Image | None, after: Image | None
    ) -> InputEvent:
        commit_ts = metadata.get("commit_version")
        if commit_ts is not None and commit_ts < FIRST_TSO:
            raise EncodeError(
                f"{commit_ts} is not a commit_ts of TiDB (Delta's change feed has its own versions "
                "there): leave the column out",
                column=self._added["commit_version"],
            )
        sequence = metadata.get("sequence")
        event = RowChange(
            op,
            self.table,
            before,
            after,
            commit_ts=commit_ts,
            source_time=metadata.get("commit_timestamp"),
        )
        source = (None, None, None)
        if sequence is None:
            order_by = None if commit_ts is None else "commit_ts"
            return InputEvent(event, source, order_by, commit_ts)
        event.index = sequence.get("index") or 0
        if commit_ts is None and sequence.get("commit"):
            event.sequence_commit = sequence["commit"]
        return InputEvent(event, source, "_sequence", _position(sequence))

    def _image(
        self, metadata: dict[str, Any], row: tuple[Any, ...], unconverted: list[str]
    ) -> Image:
        values = dict(zip(self._columns, row, strict=True))
        absent = tuple(name for name in metadata.get("absent") or () if name is not None)
        if absent:
            # It may name columns that are not among those to write.
            absent = spelled(absent, tuple(self._columns), case_sensitive=False)
            values = {name: values[name] for name in values if name not in absent}
        for name in unconverted:
            value, convert = values.get(name), self._columns[name]
            if value is None or convert is None:
                continue
            try:
                values[name] = convert(value)
            except EncodeError as error:
                raise error.at(column=name) from error
            except BadValue as error:
                type_ = self._declared[name]
                hint = f", and its type is {type_!r}: cast it, or set columnTypes" if type_ else ""
                raise EncodeError(f"{error}{hint}", column=name) from error
        return Image(values, complete=len(values) == len(self._columns))

    def _wait(self, metadata: dict[str, Any], image: Image) -> None:
        key = self._pair_of(metadata, image)
        if key in self.waiting or (self.waiting and not self._has_sequence):
            raise self._alone()
        if len(self.waiting) >= MAX_WAITING:
            raise EncodeError(
                f"{MAX_WAITING} update_preimages have no postimage yet; "
                "sortWithinPartitions by the key and then _sequence"
            )
        self.waiting[key] = metadata, image

    def _pair_of(self, metadata: dict[str, Any], image: Image) -> Any:
        sequence = metadata.get("sequence")
        if sequence is None:
            return None
        pair = tuple(sequence.get(name) for name in _COMPARED[:-1])
        if sequence.get("offset") or not sequence.get("rank"):
            return pair
        # All changes of a commit_ts have this sequence (docs/order.md).
        return (*pair, *(str(image.values.get(name)) for name in self.table.key_columns))

    def _alone(self) -> EncodeError:
        return EncodeError(
            "an update_preimage has no update_postimage after it in the same task: repartition by "
            "the key and sortWithinPartitions by _sequence; if updates change the key, read with "
            "splitKeyUpdates=true or write from one task"
        )

    def _located(self, error: EncodeError, metadata: dict[str, Any]) -> EncodeError:
        sequence = metadata.get("sequence")
        place = "" if sequence is None else f" (_sequence {_position(sequence)})"
        return error.at(
            table=qualified(*self.table.name),
            commit_ts=metadata.get("commit_version"),
            reason=error.reason + place,
        )


_COMPARED = ("epoch", "commit", "rank", "partition", "offset", "index", "part")
"""The fields of ``_sequence`` that compare from left to right."""


def _position(sequence: dict[str, Any]) -> tuple[int, ...]:
    return tuple(sequence.get(name) or 0 for name in _COMPARED)


def _table(
    fields: list[spark.StructField],
    options: WriteOptions,
    resolve_type: Callable[[str], LogicalType],
) -> tuple[TableSchema, dict[str, Convert | None]]:
    """The table, and the converters of its columns' cells; None: no conversion."""
    names = [field.name for field in fields]
    given = options.column_types
    declared = dict(zip(option_names("columnTypes", given, names), given.values(), strict=True))
    keys = option_names("keyColumns", options["keyColumns"], names)
    columns = []
    for field in fields:
        text = declared.get(field.name, "")
        type_ = resolve_type(text) if text else logical_type(field.dataType)
        if type_ is None or isinstance(type_, logical.Unknown):
            raise OptionError(f"option columnTypes: {text!r} of {field.name} is not a known type")
        nullable = None if field.nullable else False
        columns.append(Column(field.name, text, type_, nullable, field.name in keys))
    assert options.table is not None
    database, schema, table = split_name(options.table)
    return (
        TableSchema(database, table, tuple(columns), keys, schema),
        {
            column.name: cell_converter(column, field.dataType)
            for column, field in zip(columns, fields, strict=True)
        },
    )
