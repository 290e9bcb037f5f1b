"""Each golden message is recognised by the format that it is of, and by no other."""

from __future__ import annotations

import pytest
from golden_data import (
    CODECS,
    GOLDEN,
    load_variant,
    native_messages,
    variant_names,
)

from cdcfmt_core.events import Message
from cdcfmt_core.registry import default_registry

VARIANTS = [(folder, name) for folder in CODECS for name in variant_names(folder)]
NATIVE = {"canal": "canal-json"}
"""Folder of the native producers' messages → their format."""
NATIVE_FILES = [
    (folder, path.name.removesuffix(".jsonl.gz"))
    for folder in NATIVE
    for path in sorted((GOLDEN / "native" / folder).glob("*.jsonl.gz"))
]

CERTAIN_ENOUGH = 0.5


def recognised_as(message: Message) -> set[str]:
    codecs = default_registry().codecs().values()
    return {codec.name for codec in codecs if codec.sniff(message) >= CERTAIN_ENOUGH}


def test_every_folder_has_its_format() -> None:
    folders = {path.name for path in (GOLDEN / "ticdc").iterdir() if path.is_dir()}
    assert folders == CODECS.keys()
    assert {path.name for path in (GOLDEN / "native").iterdir()} == NATIVE.keys() | {"workload"}


@pytest.mark.parametrize(("folder", "name"), VARIANTS)
def test_ticdc(folder: str, name: str) -> None:
    variant = load_variant(folder, name)
    # Compressed as a whole there is nothing to see; frames stay what they are.
    visible = variant.compression == "none" or folder == "open"
    for golden in variant.messages:
        assert recognised_as(golden.message) == ({CODECS[folder]} if visible else set())


@pytest.mark.parametrize(("folder", "name"), NATIVE_FILES)
def test_native(folder: str, name: str) -> None:
    messages = [m for m in native_messages(f"{folder}/{name}") if m.value is not None]
    assert messages
    for message in messages:
        assert recognised_as(message) == {NATIVE[folder]}
