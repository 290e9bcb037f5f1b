"""JSON with too many values is rejected before parsing; large texts are accepted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.errors import DecodeError
from cdcfmt_toolkit import json_size
from cdcfmt_toolkit.json_size import check_values

documents = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\,[{\n')),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('a"\\,[{')), inner),
)


def structure_of(document: object) -> int:
    """Commas and opening brackets, which stand for the values."""
    if not isinstance(document, list | dict):
        return 0
    items = list(document.values()) if isinstance(document, dict) else document
    return 1 + max(len(items) - 1, 0) + sum(map(structure_of, items))


@given(documents)
def test_values_are_counted_outside_of_texts(document: object) -> None:
    data = json.dumps(document).encode()
    count = structure_of(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_size, "_LEAST_VALUES", count)
        check_values(data, 0)
        if 0 < count < len(data):
            patch.setattr(json_size, "_LEAST_VALUES", count - 1)
            with pytest.raises(DecodeError, match="raise maxMessageBytes"):
                check_values(data, 0)
            check_values(data, 384 * count)


@pytest.mark.parametrize(
    "data",
    [b"[],", b"{},", b"1,", b'"",', b'"\\"",', b'{"a":'],
    ids=["lists", "objects", "numbers", "texts", "escapes", "nested"],
)
def test_a_megabyte_of_values_is_rejected(data: bytes) -> None:
    with pytest.raises(DecodeError, match="more than 350000 values"):
        check_values(b"[" + data * 600_000, 0)


def test_a_megabyte_of_text_is_accepted() -> None:
    for text in (",[{" * 600_000, '\\"' * 600_000, "\\\\" * 600_000):
        check_values(json.dumps({"a": text, "b": [1, 2]}).encode(), 0)
