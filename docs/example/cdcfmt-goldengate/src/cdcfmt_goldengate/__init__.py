"""JSON messages of Oracle GoldenGate for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, hookimpl
from cdcfmt_goldengate.options import OPTIONS
from cdcfmt_goldengate.sniff import sniff


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="goldengate",
            summary="JSON of Oracle GoldenGate (operation modeled)",
            spec_url="https://docs.oracle.com/en/middleware/goldengate/big-data/23/gadbd/",
            open_decoder="cdcfmt_goldengate.decode:open_decoder",
            options=OPTIONS,
            sniff=sniff,
            emits=frozenset({"row"}),
            type_map="oracle",
            api_version=1,
        )
    ]
