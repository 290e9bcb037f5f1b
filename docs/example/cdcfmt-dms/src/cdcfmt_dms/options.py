"""The settings of a DMS endpoint that its messages do not show."""

from __future__ import annotations

from typing import Final

from cdcfmt_core import Option

OPTIONS: Final = (
    Option(
        "beforeImageField",
        "The member with the row before an update: FieldName of the task's BeforeImageSettings.",
        default="before-image",
    ),
    Option(
        "absentIsNull",
        "Whether a column that a row lacks is NULL. DMS leaves out NULL and empty values where the "
        "endpoint has IncludeNullAndEmpty=false, its default, so that `true` reads both as NULL.",
        type="bool",
        default=False,
    ),
)
