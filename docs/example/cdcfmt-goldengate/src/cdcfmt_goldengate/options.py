"""Options for what messages of GoldenGate do not show."""

from __future__ import annotations

from typing import Final

from cdcfmt_core import Option

OPTIONS: Final = (
    Option(
        "columnTypes",
        "Oracle's types of columns, which messages do not have, as a JSON object: "
        '{"SHOP.ORDERS": {"ID": "NUMBER(10)", "ORDERED": "DATE"}}. A column that it does not name '
        "keeps its JSON value.",
    ),
    Option(
        "completeUpdates",
        "Whether updates and deletes have all columns, as with LOGALLSUPCOLS, NOCOMPRESSUPDATES "
        "and NOCOMPRESSDELETES. Otherwise their images are incomplete, unless columnTypes names "
        "the columns of the table and all are there.",
        type="bool",
        default=False,
    ),
)
