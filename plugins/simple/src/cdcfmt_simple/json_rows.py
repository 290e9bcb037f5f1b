"""``data`` and ``old`` of a JSON message, and the plan that reads them."""

from __future__ import annotations

from typing import Any

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.images import OtherColumns, Row
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.json_plan import JsonPlan
from cdcfmt_simple.message import Wire
from cdcfmt_simple.plans import TablePlans


class JsonRows:
    """Reads the rows of JSON messages."""

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
        candidates = self._plans.find(database, table, version)
        plan = candidates.usual
        try:
            if plan is None:
                raise OtherColumns
            before, after = self._read_images(plan, data, old, complete)
        except OtherColumns:
            # What is wrong must not depend on the rows before: an image that is not read has
            # no part in it.
            plan = candidates.plan_for(frozenset(first))
            if read := self._wanted_old(plan, data, old):
                plan = candidates.plan_for(frozenset(first) | frozenset(read))
            before, after = self._read_images(plan, data, old, complete, some=True)
        mismatch = None
        if self._verifier is not None and complete and wire.get("checksum") is not None:
            mismatch = self._verifier.verify(wire, plan.schema, data, old)
        return plan.schema, before, after, mismatch

    def _read_images(
        self,
        plan: JsonPlan,
        data: dict[str, Any] | None,
        old: dict[str, Any] | None,
        complete: bool,
        *,
        some: bool = False,
    ) -> tuple[Image | None, Image | None]:
        before: Image | None = None
        after: Image | None = None
        size = len(plan.names)
        if data is not None:
            after = Image(plan.read(data, "data", some=some), complete and len(data) == size)
        old = self._wanted_old(plan, data, old)
        if old is not None:
            before = Image(plan.read(old, "old", some=some), complete and len(old) == size)
        return before, after

    def _wanted_old(
        self, plan: JsonPlan, data: dict[str, Any] | None, old: dict[str, Any] | None
    ) -> dict[str, Any] | None:
        """``old`` if it is read: of an update it may be left out, unless the key changed."""
        if data is None or old is None or self._before_updates:
            return old
        is_same = all(old.get(name) == data.get(name) for name in plan.key_columns)
        return None if is_same else old
