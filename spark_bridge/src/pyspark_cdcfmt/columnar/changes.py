"""Row changes in decoded messages, and the images of them that become rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, eq
from typing import Any, Final

import attrs
from msgspec import Struct
from msgspec.structs import astuple

from pyspark_cdcfmt.columnar.origins import Origins, size_of
from pyspark_cdcfmt.columnar.plans import Plan
from pyspark_cdcfmt.columnar.structs import UNSET
from pyspark_cdcfmt.columnar.wire import Path
from pyspark_cdcfmt.columnar.zoned import text_of

CHANGE_TYPES: Final = ("insert", "update_preimage", "update_postimage", "delete")
"""What the numbers in ``Images.kinds`` mean."""

_INSERT, _PREIMAGE, _POSTIMAGE, _DELETE = range(len(CHANGE_TYPES))
_KINDS: Final[dict[str, int]] = {
    "insert": _INSERT,
    "read": _INSERT,
    "update": _POSTIMAGE,
    "upsert": _POSTIMAGE,
    "delete": _DELETE,
}


@attrs.define
class Changes:
    """Row changes in order: word and images of each, and the message it lies in.

    ``messages`` and ``index``, the place in the message, are None where each has one.
    """

    words: list[str]
    befores: list[Any]
    afters: list[Any]
    messages: list[int] | None = None
    index: list[int] | None = None


@attrs.define
class Images:
    """Images as tuples of cells in the order of their rows, and the row change of each."""

    rows: list[tuple[Any, ...]] = attrs.field(factory=list)
    kinds: list[int] = attrs.field(factory=list)
    changes: list[int] = attrs.field(factory=list)


def find_changes(
    plan: Plan,
    messages: Sequence[Struct],
    unusual: set[int],
    event_index: Sequence[int] | None = None,
    *,
    origins: Origins,
) -> Changes:
    """The row changes of messages that ``plan`` decoded.

    ``unusual`` gets the numbers of messages that only look like rows.  ``event_index`` is for
    events, each of which is a message here: their places in the real one.  ``origins`` are
    those of the messages.
    """
    paths = plan.reader.paths
    for path in plan.reader.nevers:
        flags = values_at(path, messages)
        if True in flags:
            unusual.update(place for place, flag in enumerate(flags) if flag)
    words, afters = values_at(paths["op"], messages), values_at(paths["after"], messages)
    befores = values_at(paths["before"], messages) if "before" in paths else [None] * len(words)
    if event_index is not None:
        return Changes(words, befores, afters, list(range(len(words))), list(event_index))
    if not plan.layout.in_lists:
        return Changes(words, befores, afters)
    if not plan.reader.batched:
        return Changes(words, [old and old[0] for old in befores], [new[0] for new in afters])
    places: list[int] = []
    index: list[int] = []
    changes = Changes([], [], [], places, index)
    for place, (word, old, new) in enumerate(zip(words, befores, afters, strict=True)):
        if (old and len(old) != len(new)) or plan.is_too_much(len(new), size_of(origins, place)):
            unusual.add(place)
            continue
        changes.words += [word] * len(new)
        changes.befores += old or [None] * len(new)
        changes.afters += new
        places += [place] * len(new)
        index += range(len(new))
    return changes


def find_images(plan: Plan, changes: Changes, unusual: set[int]) -> Images:
    """The images that become rows.

    ``unusual`` gets the changes that are left out: of keys, and those without an image.
    """
    ops = plan.layout.ops
    images = Images()
    add, add_kind, add_change = images.rows.append, images.kinds.append, images.changes.append
    partial, keys, both = plan.reader.partial, plan.keys, plan.before_updates
    deleted_before = plan.layout.deleted_row == "before"
    only_keys = not both and not deleted_before
    for change, (word, before, after) in enumerate(
        zip(changes.words, changes.befores, changes.afters, strict=True)
    ):
        op = ops[word]
        image = before if deleted_before and op == "delete" else after
        if image is None:
            unusual.add(change)
            continue
        row = image if type(image) is tuple else astuple(image)
        if op == "update" and before is not None:
            old = before if type(before) is tuple else astuple(before)
            if keys and differ(old, row, keys, only_keys):
                unusual.add(change)
                continue
            if plan.reader.doubts_nulls and _is_doubtful(plan, old, row):
                unusual.add(change)
                continue
            if both:
                if partial and UNSET in old:
                    old = tuple(
                        new if cell is UNSET else cell for cell, new in zip(old, row, strict=True)
                    )
                add(old)
                add_kind(_PREIMAGE)
                add_change(change)
        add(row)
        add_kind(_KINDS[op])
        add_change(change)
    return images


def differ(
    old: tuple[Any, ...], row: tuple[Any, ...], keys: tuple[int, ...], only_keys: bool
) -> bool:
    """Whether an update changed the key, as far as the wire tells.

    ``only_keys``: no other cells of ``old`` count, and they are its first.
    """
    cells = old[: len(keys)] if only_keys else [old[key] for key in keys]
    return any(
        cell is not UNSET and cell != row[key] for cell, key in zip(cells, keys, strict=True)
    )


def cells_of(plan: Plan, rows: Sequence[tuple[Any, ...]]) -> list[Sequence[Any]]:
    """The cells of each column; zoned ones without their zones."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    if not columns:
        columns = [()] * (plan.width + len(plan.reader.flags))
    for place in plan.zoned:
        columns[place] = [None if cell is None else text_of(cell) for cell in columns[place]]
    return columns


def _is_doubtful(plan: Plan, old: tuple[Any, ...], row: tuple[Any, ...]) -> bool:
    """Whether a NULL of ``old`` may be something else: nothing shows that NULLs are certain."""
    if any(map(eq, old[: plan.width], row)):
        return False
    return None in old or plan.reader.hides


def values_at(path: Path, messages: Sequence[Struct]) -> list[Any]:
    """One member of every message."""
    get: Callable[[Any], Any] = attrgetter(".".join(f"f{place}" for place in path))
    return list(map(get, messages))
