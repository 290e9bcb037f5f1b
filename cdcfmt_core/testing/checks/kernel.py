"""The compiled kernel gives what the decoder gives; the engine for it is the Spark bridge's."""

from __future__ import annotations

import importlib

from cdcfmt_core.testing.subject import Subject

MISSING = (
    "NOT CHECKED: the codec declares open_layouts, and only pyspark-cdcfmt, which is not "
    'installed, can hold them against the decoder: pip install "pyspark-cdcfmt[spark]"'
)


class NotChecked(Exception):
    """What the check needs is not installed."""


def check_kernel(subject: Subject) -> None:
    """By the kernel, as `open_layouts` says, the same rows as through the decoder.

    :raises NotChecked: where pyspark-cdcfmt, pyspark or cdcfmt-kernel is not installed.
    """
    if subject.spec.open_layouts is None:
        return
    try:
        bridge = importlib.import_module("pyspark_cdcfmt.testing")
    except ModuleNotFoundError as error:
        raise NotChecked(f"{MISSING} ({error})") from error
    bridge.check_kernel(subject)
