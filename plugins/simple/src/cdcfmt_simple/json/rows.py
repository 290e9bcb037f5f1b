"""Decoder of ``data`` and ``old`` of JSON messages."""

from __future__ import annotations

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Op
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.images import Row, wanted_old
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.json.plans import JsonPlan
from cdcfmt_simple.message import Wire
from cdcfmt_simple.plans import TablePlans


class JsonRows:
    """Decodes the rows of JSON messages."""

    def __init__(self, context: DecoderContext, zones: Zones, verifier: Verifier | None) -> None:
        self._before_updates = context.projection.before_updates
        self._verifier = verifier
        self._plans = TablePlans(context, lambda schema: JsonPlan(schema, context, zones), 1_000)

    def read(
        self, wire: Wire, op: Op, database: str, table: str, version: int, *, complete: bool
    ) -> Row:
        """The images of a row.

        :raises MissingSchemaError: if its table's schema is not known.
        """
        data, old = wire.get("data"), wire.get("old")
        if op == "insert":
            old = None
        elif op == "delete":
            data = None
        field, first = ("old", old) if op == "delete" else ("data", data)
        if first is None:
            raise DecodeError(
                f"a required field of a row event is missing ({wire['type']})", field=field
            )
        if type(first) is not dict or not (old is None or type(old) is dict):
            field, value = (field, first) if type(first) is not dict else ("old", old)
            raise DecodeError("is not an object", field=field, sample=value)
        plan = self._plans.find(database, table, version, frozenset(first))
        read = wanted_old(data, old, plan.key_columns, before_updates=self._before_updates)
        if read is not None and data is not None and not read.keys() <= data.keys():
            plan = self._plans.find(database, table, version, frozenset(data | read))
        after = plan.read(data, "data", complete=complete)
        before = plan.read(read, "old", complete=complete)
        mismatch = None
        if self._verifier is not None and complete and wire.get("checksum") is not None:
            mismatch = self._verifier.verify(wire, plan.schema, data, old)
        return plan.schema, before, after, mismatch
