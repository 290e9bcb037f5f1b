"""Decoder of row images: values of ``before`` and ``after``, and unavailable values.

Sources: Debezium MySQL connector, "Data change events"; Debezium PostgreSQL connector,
"Toasted values"; TiCDC Debezium, "DML event".
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op, RowChange, TableSchema
from cdcfmt_debezium.given_tables import GivenTables
from cdcfmt_debezium.message import ROUTED_TABLE
from cdcfmt_debezium.plans import RowSource, TablePlan, TablePlans
from cdcfmt_debezium.profile import ProducerProfile
from cdcfmt_debezium.unavailable import Unavailable
from cdcfmt_debezium.wire_schema import WireSchema
from cdcfmt_toolkit.images import read_image
from cdcfmt_toolkit.wire_json import object_of

_AMBIGUOUS = "ambiguous_unsigned"


class RowDecoder:
    """Decodes the images of one row; the caller fills in the rest of the event."""

    def __init__(
        self,
        context: DecoderContext,
        plans: TablePlans,
        given: GivenTables,
        unavailable: Unavailable,
    ) -> None:
        self._plans = plans
        self._given = given
        self._schemas = context.schemas
        self._unavailable = unavailable

    def decode(
        self,
        op: Op,
        before: Any,
        after: Any,
        *,
        wire: WireSchema | None,
        place: tuple[str, str, str | None],
        stream: str,
        position: Any,
        profile: ProducerProfile,
        key: dict[str, Any] | None,
        may_lack: bool,
    ) -> RowChange:
        """The change of one row, without times and commit_ts; ``extra`` is incomplete.

        ``may_lack``: the message contains a placeholder of an unavailable value.
        """
        database, table, schema = place
        stored = None
        of_key: dict[str, Any] = {}
        given = self._given.find(database, table, schema) if wire is None else None
        if given is not None:
            stored = given
        elif self._schemas:
            stored = self._schemas.find(database, table, position, schema=schema, stream=stream)
        only_key = False
        if op == "delete":
            after = None
            if not before:
                # Without an image, the key identifies the row.
                only_key = True
                before, of_key = self._columns_of(key or {}, wire, stored)
                if not before:
                    raise DecodeError("a delete has neither an image nor a key", field="before")
        elif op == "truncate":
            before = after = None
        elif not after:
            raise DecodeError(
                f"a required field of an event of kind {op} is missing", field="after", sample=after
            )
        elif op != "update":
            before = None

        lacking_before = self._unavailable.take_from(before) if may_lack and before else ()
        lacking_after = self._unavailable.take_from(after) if may_lack and after else ()
        names = _names(before or None, after, wire, stored, lacking_before + lacking_after)
        keys = None if key is None else tuple(key)
        plan = self._plans.find(
            RowSource(
                wire, stored, given is not None, *place, profile, names, keys, position, stream
            )
        )

        old: Image | None = None
        new: Image | None = None
        ambiguous: tuple[str, ...] = ()
        if before and (op == "delete" or plan.reads_before(before, after or {})):
            old = Image(
                read_image(before, plan.readers, "before"), not (only_key or lacking_before)
            )
            ambiguous = _negative(old.values, plan)
        if after:
            completed: tuple[str, ...] = ()
            if lacking_after and before:
                # Unavailable means unchanged.
                completed = tuple(name for name in lacking_after if name in before)
                after = after | {name: before[name] for name in completed}
            values = read_image(after, plan.readers, "after")
            new = Image(values, len(completed) == len(lacking_after), completed)
            ambiguous += tuple(name for name in _negative(values, plan) if name not in ambiguous)
        extra = of_key | ({_AMBIGUOUS: list(ambiguous)} if ambiguous else {})
        return RowChange(op, plan.schema, old, new, extra=extra or None)

    def _columns_of(
        self, key: dict[str, Any], wire: WireSchema | None, stored: TableSchema | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of a key that are columns, and others, which a transform added."""
        columns: Container[str] = (wire.row_fields() if wire else None) or (
            stored.column_names if stored else key
        )
        own: dict[str, Any] = {}
        other: dict[str, Any] = {}
        for name, value in key.items():
            is_own = name in columns and name != ROUTED_TABLE
            (own if is_own else other)[name] = value
        return own, other


def image_of(payload: Mapping[str, Any], field: str) -> dict[str, Any] | None:
    """An image; None if it is null, missing, or empty (CloudCanal's ``{}``)."""
    return object_of(payload, field) or None


def _names(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    wire: WireSchema | None,
    stored: Any,
    lacking: tuple[str, ...],
) -> tuple[str, ...]:
    """The columns of the message, in the order of its images."""
    if after is None and before is None:
        fields = wire.row_fields() if wire else None
        return tuple(fields or (stored.column_names if stored else ()))
    names = tuple(after if after is not None else before or ())
    if after is not None and before is not None and not before.keys() <= after.keys():
        names += tuple(name for name in before if name not in after)
    if lacking:
        names += tuple(dict.fromkeys(name for name in lacking if name not in names))
    return names


def _negative(values: Mapping[str, Any], plan: TablePlan) -> tuple[str, ...]:
    return tuple(
        name
        for name in plan.signless
        if type(value := values.get(name)) is int and -(1 << 63) <= value < 0
    )
