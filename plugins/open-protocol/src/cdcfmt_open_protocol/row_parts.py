"""The messages of rows as data for the compiled kernel."""

from __future__ import annotations

from collections.abc import Collection

import attrs
import orjson

from cdcfmt_core.events import Op
from cdcfmt_core.toolkit.json_output import escape_for_go
from cdcfmt_core.toolkit.row_messages import (
    Member,
    Members,
    Number,
    OfExtra,
    Part,
    RowMessage,
    Which,
)
from cdcfmt_open_protocol.encode_plans import EncodePlan


def row_message(
    op: Op,
    plan: EncodePlan,
    *,
    old_values: bool,
    only_updated: bool,
    handle_key_deletes: bool,
) -> RowMessage | None:
    """The key and value of an event of a row with all columns; None: they cannot be written."""
    row: Which = "before" if op == "delete" else "after"
    value: list[Part]
    if op == "delete":
        only = plan.handle if handle_key_deletes else plan.encodings
        if not only:
            return None
        value = [_members(plan, "before", '{"d":{', only)]
    else:
        value = [_members(plan, "after", '{"u":{')]
        if op == "update" and old_values:
            old = _members(plan, "before", ',"p":{')
            value.append(attrs.evolve(old, changed=only_updated, by_value=only_updated))
    return RowMessage(value=(*value, "}"), key=_key(plan, row))


def _members(
    plan: EncodePlan, image: Which, head: str, only: Collection[str] | None = None
) -> Members:
    columns = {}
    for name, cell, _ in plan.columns:
        if only is None or name in only:
            said = escape_for_go(orjson.dumps({name: cell}))
            label = said.removesuffix(b"null}}").removeprefix(b"{").decode()
            columns[name] = Member(label, plan.encodings[name], tail="}", null="null}")
    return Members(image, columns, head, missing=None)


def _key(plan: EncodePlan, row: Which) -> tuple[Part, ...]:
    # As Go leaves out what is zero.
    row_id = OfExtra("row_id", "integer", "", '"rid":', ",", zero="")
    if plan.row_id is not None:
        row_id = OfExtra("row_id", "integer", "", '"rid":', ",", zero="", column=(row, plan.row_id))
    return (
        '{"ts":',
        Number("commit_ts"),
        "," + plan.scm_tbl.decode(),
        row_id,
        OfExtra("partition_id", "integer", "", '"ptn":', ","),
        '"t":1}',
    )
