"""Error texts about tables that the input does not have."""

from __future__ import annotations

import pytest

from cdcfmt_toolkit.table_texts import nearest_tables


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        # A long database name does not make tables similar.
        ("warehouse.composit", "did you mean warehouse.composites?"),
        ("warehouse.t9", "did you mean warehouse.t1?"),
        ("warehose.Orderz", "did you mean warehouse.orders?"),
        ("warehouse.qqqq", "it has warehouse.composites, warehouse.orders, warehouse.t1"),
    ],
)
def test_nearest_tables(wanted: str, text: str) -> None:
    known = [("warehouse", table) for table in ("t1", "orders", "composites")]
    assert nearest_tables(wanted, known) == text
