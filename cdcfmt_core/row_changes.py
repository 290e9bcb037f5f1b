"""What readers and writers alike do to row changes."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from cdcfmt_core.events import RowChange


def split_key_update(event: RowChange, key_columns: Sequence[str]) -> list[RowChange]:
    """An update that changes the key as the delete of the old row and the insert of the new.

    In that order, as TiCDC splits them; every other change comes back alone.  Columns
    that one of the images lacks are not known to have changed.
    """
    if event.op != "update" or event.before is None or event.after is None:
        return [event]
    old, new = event.before.values, event.after.values
    if all(old.get(name) == new.get(name) for name in key_columns if name in old and name in new):
        return [event]
    return [
        attrs.evolve(event, op="delete", after=None),
        attrs.evolve(event, op="insert", before=None),
    ]
