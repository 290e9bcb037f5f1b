"""The compiled kernel and the decoder give equal rows; the Spark bridge runs the comparison."""

from __future__ import annotations

import importlib

from cdcfmt_testing.subject import Subject

MISSING = (
    "NOT CHECKED: the codec declares open_layouts, and only pyspark-cdcfmt, which is not "
    'installed, can compare them with the decoder: pip install "pyspark-cdcfmt[spark]"'
)


class NotChecked(Exception):
    """A package that the check needs is not installed."""


def check_kernel(subject: Subject) -> None:
    """The kernel, with the layouts of `open_layouts`, gives the same rows as the decoder.

    :raises NotChecked: if pyspark-cdcfmt, pyspark or cdcfmt-kernel is not installed.
    """
    if subject.spec.open_layouts is None:
        return
    try:
        bridge = importlib.import_module("pyspark_cdcfmt.testing")
    except ModuleNotFoundError as error:
        raise NotChecked(f"{MISSING} ({error})") from error
    bridge.check_kernel(subject)
