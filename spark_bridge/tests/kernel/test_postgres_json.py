"""JSON of PostgreSQL's connector by the compiled kernel: the same rows as the reference."""

from __future__ import annotations

import pytest
from support.framed_data import framed_messages

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
TABLES = ("t_num", "t_numspecial", "t_text", "t_time", "nopk_full", "t_array", "t_array2", "toast")


@pytest.mark.parametrize("form", ["json", "variant"])
@pytest.mark.parametrize("folder", OPTIONS)
def test_events(folder: str, form: str) -> None:
    messages = framed_messages(f"postgres/{folder}")
    asked = parsed({"protocol": "debezium", "imageFormat": form, **OPTIONS[folder]})
    result = check_equal(messages, events_schema(asked), asked)
    assert result.by_kernel > 400, result


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("folder", OPTIONS)
def test_changes(folder: str, table: str) -> None:
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
            **OPTIONS[folder],
        }
    )
    schema = inferred_schema(messages, asked)
    assert schema is not None
    check_equal(messages, schema, asked)
