"""JSON of PostgreSQL's connector by the compiled kernel: the same rows as the reference."""

from __future__ import annotations

import pytest
from support.framed_data import framed_messages
from support.postgres_given import VARIANTS, table_schemas

from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

OPTIONS = {
    "noschema_default": {},
    "schema_default": {},
    # Decimals as numbers of any size; as text, with intervals and bytes.
    "schema_adaptive_micros": {},
    "schema_micros_avronames": {"binaryHandlingMode": "base64"},
    "schema_strings": {"binaryHandlingMode": "hex"},
}
GIVEN = {
    variant: {**options, "typeMap": "postgresql", "tableSchemas": table_schemas()}
    for variant, options in VARIANTS.items()
    if "flattened" not in options
}
"""Types that are not in messages."""
TABLES = ("t_num", "t_numspecial", "t_text", "t_time", "nopk_full", "t_array", "t_array2", "toast")


@pytest.mark.parametrize("form", ["json", "variant"])
@pytest.mark.parametrize("folder", OPTIONS)
def test_events(folder: str, form: str) -> None:
    messages = framed_messages(f"postgres/{folder}")
    asked = parsed({"protocol": "debezium", "imageFormat": form, **OPTIONS[folder]})
    result = check_equal(messages, events_schema(asked), asked)
    assert result.by_kernel > 400, result


@pytest.mark.parametrize(("folder", "least"), [*zip(GIVEN, (380, 340, 120), strict=True)])
def test_events_of_given_types(folder: str, least: int) -> None:
    asked = parsed({"protocol": "debezium", **GIVEN[folder]})
    result = check_equal(framed_messages(f"postgres/{folder}"), events_schema(asked), asked)
    assert result.by_kernel > least, result


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    ("folder", "options"),
    [
        *(pytest.param(*each, id=each[0]) for each in OPTIONS.items()),
        *(pytest.param(*each, id=f"{each[0]}, given") for each in GIVEN.items()),
    ],
)
def test_changes(folder: str, options: dict[str, str], table: str) -> None:
    messages = [
        message
        for message in framed_messages(f"postgres/{folder}")
        if (message.topic or "").endswith(f".{table}")
    ]
    asked = parsed(
        {
            "protocol": "debezium",
            "table": f"cdc.public.{table}",
            "incompleteRows": "emit",
            **options,
        }
    )
    schema = inferred_schema(messages, asked)
    assert schema is not None
    check_equal(messages, schema, asked)
