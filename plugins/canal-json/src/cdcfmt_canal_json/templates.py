"""The order of a message's fields, as templates: TiCDC's, and Alibaba Canal's (alphabetical).

What is put in is JSON text already, but for the numbers and ``type``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from cdcfmt_core.toolkit.row_messages import Part

_SLOT = re.compile(r"%\((\w+)\)[bd]")


@attrs.frozen
class Template:
    """``row`` is a DML message of one row, ``other`` one of DDL or a watermark."""

    row: bytes
    other: bytes

    def row_parts(self, slots: Mapping[str, Iterable[Part]]) -> tuple[Part, ...]:
        """``row`` as data for the kernel, with these parts in its places."""
        parts: list[Part] = []
        for number, text in enumerate(_SLOT.split(self.row.decode())):
            # Every other one is the name of a place.
            for part in slots[text] if number % 2 else (text,):
                if isinstance(part, str) and parts and isinstance(parts[-1], str):
                    parts[-1] += part
                else:
                    parts.append(part)
        return tuple(parts)


TICDC: Final = Template(
    row=b'{"id":0,"database":%(database)b,"table":%(table)b,"pkNames":%(pkNames)b,"isDdl":false,'
    b'"type":"%(type)b","es":%(es)d,"ts":%(ts)d,"sql":"","sqlType":%(sqlType)b,'
    b'"mysqlType":%(mysqlType)b,"old":%(old)b,"data":[%(data)b]%(_tidb)b}',
    other=b'{"id":0,"database":%(database)b,"table":%(table)b,"pkNames":null,"isDdl":%(isDdl)b,'
    b'"type":"%(type)b","es":%(es)d,"ts":%(ts)d,"sql":%(sql)b,"sqlType":null,"mysqlType":null,'
    b'"data":null,"old":null%(_tidb)b}',
)

CANAL: Final = Template(
    row=b'{"data":[%(data)b],"database":%(database)b,"es":%(es)d,"gtid":%(gtid)b,"id":%(id)d,'
    b'"isDdl":false,"mysqlType":%(mysqlType)b,"old":%(old)b,"pkNames":%(pkNames)b,"sql":"",'
    b'"sqlType":%(sqlType)b,"table":%(table)b,"ts":%(ts)d,"type":"%(type)b"}',
    other=b'{"data":null,"database":%(database)b,"es":%(es)d,"gtid":%(gtid)b,"id":%(id)d,'
    b'"isDdl":%(isDdl)b,"mysqlType":null,"old":null,"pkNames":null,"sql":%(sql)b,"sqlType":null,'
    b'"table":%(table)b,"ts":%(ts)d,"type":"%(type)b"}',
)
