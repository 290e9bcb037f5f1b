"""Templates for the field order of messages: TiCDC's, and Alibaba Canal's (alphabetical)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from cdcfmt_core.toolkit.row_messages import Part

_find_slots = re.compile(r"%(\w+)%").split


@attrs.frozen
class Template:
    """Templates of one dialect.

    - ``row``: a DML message with one row
    - ``other``: a DDL or watermark message
    - ``no_key``: ``pkNames`` of a table without a primary key
    """

    row: str
    other: str
    no_key: list[str] | None


def parts_of(template: str, slots: Mapping[str, Iterable[Part]]) -> tuple[Part, ...]:
    """Fill the slots of a template with these parts."""
    parts: list[Part] = []
    # Every second item is the name of a slot.
    for number, text in enumerate(_find_slots(template)):
        parts += slots[text] if number % 2 else (text,)
    return tuple(parts)


TICDC: Final = Template(
    row='{"id":0,"database":%database%,"table":%table%,"pkNames":%pkNames%,"isDdl":false,'
    '"type":%type%,"es":%es%,"ts":%ts%,"sql":"","sqlType":%sqlType%,"mysqlType":%mysqlType%,'
    '"old":%old%,"data":[%data%]%_tidb%}',
    other='{"id":0,"database":%database%,"table":%table%,"pkNames":null,"isDdl":%isDdl%,'
    '"type":%type%,"es":%es%,"ts":%ts%,"sql":%sql%,"sqlType":null,"mysqlType":null,"data":null,'
    '"old":null%_tidb%}',
    no_key=[],
)

CANAL: Final = Template(
    row='{"data":[%data%],"database":%database%,"es":%es%,"gtid":%gtid%,"id":%id%,"isDdl":false,'
    '"mysqlType":%mysqlType%,"old":%old%,"pkNames":%pkNames%,"sql":"","sqlType":%sqlType%,'
    '"table":%table%,"ts":%ts%,"type":%type%}',
    other='{"data":null,"database":%database%,"es":%es%,"gtid":%gtid%,"id":%id%,"isDdl":%isDdl%,'
    '"mysqlType":null,"old":null,"pkNames":null,"sql":%sql%,"sqlType":null,"table":%table%,'
    '"ts":%ts%,"type":%type%}',
    no_key=None,
)
