"""The order of a message's fields, as templates: TiCDC's, and Alibaba Canal's (alphabetical)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from cdcfmt_core.toolkit.row_messages import Part

_find_slots = re.compile(r"%(\w+)%").split


@attrs.frozen
class Template:
    """``row`` is a DML message of one row, ``other`` one of DDL or a watermark.

    ``no_key`` is ``pkNames`` of a table without a primary key.
    """

    row: str
    other: str
    no_key: list[str] | None


def parts_of(template: str, slots: Mapping[str, Iterable[Part]]) -> tuple[Part, ...]:
    """A template with these parts in its places."""
    parts: list[Part] = []
    # Every other one is the name of a place.
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
