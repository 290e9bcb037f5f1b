"""Options for settings of a DMS endpoint that its messages do not show."""

from __future__ import annotations

from typing import Final

from cdcfmt_core import Option

OPTIONS: Final = (
    Option(
        "beforeImageField",
        "Member with the before image of an update: FieldName of the task's BeforeImageSettings.",
        default="before-image",
    ),
    Option(
        "absentIsNull",
        "Whether a column that a row lacks is NULL. DMS omits NULL and empty values if the "
        "endpoint has IncludeNullAndEmpty=false, its default; then `true` reads both as NULL.",
        type="bool",
        default=False,
    ),
)
