"""Decoder of the images of a row event.

Source: TiCDC Open Protocol, "Row Changed Event".  ``u`` has the new values, ``p`` the old
values of an update, ``d`` the values of a deleted row.  ``p`` may have only the changed columns
(``only-output-updated-columns``): then absent columns are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op, RowChange
from cdcfmt_open_protocol.message import ROW_FIELDS
from cdcfmt_open_protocol.old_values import certain_cells
from cdcfmt_open_protocol.plans import Cells, TablePlans, check_cells
from cdcfmt_toolkit.images import before_image


class RowDecoder:
    """Decodes the row change of one event; fields in errors are relative to its value."""

    def __init__(
        self, context: DecoderContext, *, handle_key_deletes: bool, architecture: str
    ) -> None:
        self._plans = TablePlans(context)
        self._architecture = architecture
        self._handle_key_deletes = handle_key_deletes

    def decode(
        self,
        key: Mapping[str, Any],
        wire: Any,
        text: bytes,
        insert_op: Op,
        extra: dict[str, Any] | None,
        index: int,
    ) -> RowChange:
        """Decode a row.

        :param wire: The parsed ``text``.
        :param insert_op: The operation of a row that has only ``u``.
        :raises DecodeError: for an invalid column or value, with its name.
        :raises InexactNumber: if the text must be parsed exactly.
        """
        if type(wire) is not dict:
            raise DecodeError("not a JSON object", sample=text)
        database, table = key.get("scm") or "", key["tbl"]
        if not wire.keys() <= ROW_FIELDS:
            rest = {name: value for name, value in wire.items() if name not in ROW_FIELDS}
            extra = {**(extra or {}), **rest}
        only_handle_key = key.get("ohk") is True
        new, deleted = _cells_of(wire, "u"), _cells_of(wire, "d")
        before: Image | None = None
        after: Image | None = None
        op: Op
        if deleted:
            if new or _cells_of(wire, "p"):
                raise DecodeError("a deleted row also has new or old values", field="d")
            op = "delete"
            check_cells(deleted, "d")
            plan = self._plans.find(database, table, deleted, key["ts"])
            values = plan.read(deleted, "d")
            # The only sign of delete-only-output-handle-key-columns is a row with nothing but
            # its handle key.
            is_handle = len(plan.schema.key_columns) == len(plan.schema.columns)
            whole = not (only_handle_key or self._handle_key_deletes or is_handle)
            before = Image(values, whole)
        elif new:
            old = _cells_of(wire, "p")
            unknown: tuple[str, ...] = ()
            if old is not None:
                old, unknown = certain_cells(
                    old,
                    new,
                    text,
                    architecture=self._architecture,
                    has_row_id=key.get("rid") is not None,
                )
            op = insert_op if old is None else "update"
            # Columns only in the old row: TiCDC sends none, but the protocol allows them.
            only_old = {name: cell for name, cell in (old or {}).items() if name not in new}
            check_cells(new, "u")
            check_cells(only_old, "p")
            plan = self._plans.find(database, table, {**new, **only_old}, key["ts"])
            values = plan.read(new, "u")
            after = Image(values, not only_handle_key)
            if old is not None and plan.reads_before(old, new):
                old_values = plan.read(old, "p")
                if unknown:
                    extra = {**(extra or {}), "before_unknown": list(unknown)}
                before = before_image(old_values, values, cut=only_handle_key, unknown=unknown)
        else:
            raise DecodeError("a row event has neither new nor deleted columns", sample=text)
        return RowChange(
            op, plan.schema, before, after, commit_ts=key["ts"], index=index, extra=extra
        )


def _cells_of(wire: Mapping[str, Any], field: str) -> Cells | None:
    cells: Any = wire.get(field)
    if cells is None or type(cells) is dict:
        return cells
    raise DecodeError("is not an object", field=field, sample=cells)
