"""The records of a table's rows as data for the compiled kernel: what ``encode`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.toolkit.avro_output import NULL, write_long, write_optional, write_text
from cdcfmt_core.toolkit.row_messages import (
    Choice,
    Number,
    OfExtra,
    Part,
    RowMessage,
    RowMessages,
    RowNumber,
    Texts,
)
from cdcfmt_dts_avro.encode_plans import EncodePlan, EncodePlans
from cdcfmt_dts_avro.message import DEFAULT_SOURCE, OP_OF_OPERATION, OPERATIONS, SOURCE_TYPES
from cdcfmt_dts_avro.types import Family, sources_of

_Plans: TypeAlias = list[tuple[tuple[str, ...], EncodePlan | None]]
"""Sources, and how they write the rows of a table; None: such a table is none of theirs."""

_FAMILIES: Final[tuple[Family, ...]] = ("mysql", "postgresql", "other")
_ZERO: Final = write_long(0)
_EMPTY: Final = write_text("")


def row_messages(
    plans: EncodePlans, table: TableSchema, name: str, tags: Mapping[str, str]
) -> RowMessages:
    """``name`` and ``tags`` are what each record says of its table."""
    of_sources = [(sources_of(family), _plan(plans, table, family)) for family in _FAMILIES]
    return RowMessages(
        {
            op: RowMessage(
                (
                    OfExtra("version", "integer", _ZERO),
                    RowNumber("id"),
                    Number("executed_seconds"),
                    OfExtra("source_position", "text", _EMPTY),
                    OfExtra("safe_source_position", "text", _EMPTY),
                    OfExtra("transaction_id", "text", _EMPTY),
                    _SOURCE,
                    OfExtra("source_version", "text", _EMPTY),
                    write_long(OPERATIONS.index(operation)),
                    write_optional(name, write_text),
                    OfExtra("process_timestamps", "integers", NULL, head="\2"),
                    Texts("tags", tags),
                    _images(of_sources, op),
                    OfExtra("born_timestamp", "integer", b""),
                ),
                wire="avro",
            )
            for operation, op in OP_OF_OPERATION.items()
        }
    )


_SOURCE: Final = Choice(
    "source_type",
    tuple(((source,), (write_long(number),)) for number, source in enumerate(SOURCE_TYPES)),
    (write_long(SOURCE_TYPES.index(DEFAULT_SOURCE)),),
)


def _plan(plans: EncodePlans, table: TableSchema, family: Family) -> EncodePlan | None:
    try:
        return plans.find(table, sources_of(family)[0])
    except EncodeError:
        # The encoder says so of each row.
        return None


def _images(of_sources: _Plans, op: Op) -> Choice:
    """``fields`` and both images, by the numbers that types have in the source."""
    among = tuple(
        (sources, None if plan is None else _image_parts(plan, op)) for sources, plan in of_sources
    )
    default = next(parts for sources, parts in among if DEFAULT_SOURCE in sources)
    return Choice("source_type", among, default)


def _image_parts(plan: EncodePlan, op: Op) -> tuple[Part, ...]:
    before = plan.members("before") if op in ("update", "delete") else NULL
    after = NULL if op == "delete" else plan.members("after")
    return plan.fields, before, after
