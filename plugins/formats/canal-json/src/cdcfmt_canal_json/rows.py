"""Decoder of the rows of a DML message, with before images from ``old``.

Sources: TiCDC Canal-JSON, "UPDATE events" and "Changes to the old field in DELETE events";
Canal's ``MQMessageUtils.messageConverter``, which never clears its ``updateSet``: a row's
``old`` also has columns that only an earlier row of the batch changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_canal_json.binary import Form, form_of
from cdcfmt_canal_json.dialects import Dialect
from cdcfmt_canal_json.envelope import time_of
from cdcfmt_canal_json.plans import TablePlan, TablePlans
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Event, Image, Op
from cdcfmt_toolkit.default_table import NO_TABLE
from cdcfmt_toolkit.flat_rows import FlatRows, Images, Row
from cdcfmt_toolkit.images import before_image, read_image
from cdcfmt_toolkit.table_changes import row_types
from cdcfmt_toolkit.wire_json import list_of, names_of, object_of


@attrs.frozen
class RowDecoder:
    """Decodes ``data`` and ``old``."""

    _plans: TablePlans
    _dialect: Dialect
    _handle_key_deletes: bool

    def decode(
        self,
        wire: Mapping[str, Any],
        tidb: Mapping[str, Any],
        op: Op,
        place: tuple[str, str, str | None],
        commit_ts: int | None,
        extra: dict[str, Any] | None,
    ) -> list[Event]:
        """The events of a message's rows; ``place``: database, table and schema."""
        if not place[1]:
            raise DecodeError(NO_TABLE, field="table")
        data, old = list_of(wire, "data"), list_of(wire, "old")
        field = "data"
        if op == "delete":
            field, data = self._dialect.deleted_rows(data, old)
            old = None
        elif op != "update":
            old = None
        mysql_type, sql_type = object_of(wire, "mysqlType"), object_of(wire, "sqlType")
        pk_names = tuple(names_of(wire, "pkNames") or ())
        only_handle_key = tidb.get("onlyHandleKey") is True
        source_time = time_of(wire, "es", self._dialect)
        sequence_commit = self._dialect.sequence_commit(wire, commit_ts)
        position = sequence_commit if commit_ts is None else commit_ts
        form: Form | None = "latin1" if self._dialect.has_latin1(wire) else None

        def read(row: Row, path: str, old_row: Row | None, old_path: str) -> Images:
            nonlocal form
            names = tuple(row | (old_row or {}))
            # sqlType depends on the value (-5 or 3 for a bigint unsigned), so it is only used
            # without mysqlType.
            types = row_types(names, mysql_type, sql_type)
            plan = self._plans.find(place, types, pk_names, position)
            if form is None and plan.binary:
                form = form_of([*(data or ()), *(old or ())], plan.binary)
            readers = plan.readers_of(form)
            values = read_image(row, readers, path)
            if op == "delete":
                is_cut = only_handle_key or self._may_be_cut(names, plan, position)
                return plan.schema, Image(values, not is_cut), None
            before: Image | None = None
            if old_row is not None and plan.reads_before(old_row, row):
                old_values = read_image(old_row, readers, old_path)
                before = before_image(old_values, values, cut=only_handle_key)
            return plan.schema, before, Image(values, not only_handle_key)

        return FlatRows(op, wire["type"], field, data, "old", old).decode(
            read,
            sequence_commit=sequence_commit,
            commit_ts=commit_ts,
            source_time=source_time,
            emit_time=time_of(wire, "ts", self._dialect),
            extra=extra,
        )

    def _may_be_cut(self, names: tuple[str, ...], plan: TablePlan, position: int | None) -> bool:
        # The only sign of TiCDC's delete-only-output-handle-key-columns is a row with nothing but
        # its primary key.  Other producers, whose rows have no commit, send all columns.
        is_key = position is not None and len(names) <= len(plan.schema.key_columns)
        return self._handle_key_deletes or is_key or not names
