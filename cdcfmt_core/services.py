"""Functions that other packages provide for every format: entry points of ``cdcfmt.services``.

The core runs plugins, and leaves storage, compression and SQL to the packages that have them::

    # pyproject.toml of cdcfmt-toolkit
    [project.entry-points."cdcfmt.services"]
    large-messages = "cdcfmt_toolkit.large_message_output:open_output"
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core.errors import (
    INTERRUPTIONS,
    BrokenPluginError,
    DuplicateFormatError,
    MissingDependencyError,
    describe,
)
from cdcfmt_core.known import packages
from cdcfmt_core.lazy import installed

GROUP: Final = "cdcfmt.services"


@functools.cache
def service(name: str) -> Callable[..., Any]:
    """The function of this name, imported on the first request of the process.

    - ``claim-check-reader(uri, storage_options)``: a :class:`~cdcfmt_core.codec.ClaimChecks`
    - ``claim-check-writer(uri, storage_options, raw_value=…)``: the folder that an encoder's claim
      checks go to
    - ``large-messages(max_bytes, handle, compression, claim_checks)``: a
      :class:`~cdcfmt_core.encoder.LargeMessages`
    - ``message-schemas(chosen, kept, registry)``: a
      :class:`~cdcfmt_core.schema_registry.MessageSchemas` of the chosen registry (or None), and of
      the schemas kept by a :class:`~cdcfmt_core.schemas.records.Persistence` (or None)
    - ``not-recognised(codecs, message, broken, schema)``: the error of a message that no format
      recognises
    - ``of-another-format(own, codecs, message, error, schema)``: the error of a message that
      ``own`` cannot decode; names the format that it looks like
    - ``partitioner(name, columns, partitions)``: a function from a row to its partition
    - ``search-marks(lines, marks, names)``: whether lines hold one of the marks, or (unless
      ``names`` is empty) a whole message
    - ``statement-tables(statements)``: tables, and the positions where they begin, from
      :class:`~cdcfmt_core.schemas.records.Statement` objects

    :raises MissingDependencyError: if no installed package provides it.
    :raises DuplicateFormatError: if several do.
    :raises BrokenPluginError: if it cannot be imported.
    """
    found = {each.value: each for each in installed(GROUP) if each.name == name}
    if not found:
        raise MissingDependencyError(
            f"no installed package provides {name}: pip install {packages('services')[name]}"
        )
    if len(found) > 1:
        raise DuplicateFormatError(
            f"service {name!r} is provided by {' and '.join(sorted(found))}", "uninstall one"
        )
    (entry_point,) = found.values()
    try:
        function: Callable[..., Any] = entry_point.load()
    except INTERRUPTIONS:
        raise
    except BaseException as error:
        raise BrokenPluginError(
            f"service {name!r} ({entry_point.value}) could not be loaded: {describe(error)}",
            "reinstall the package that provides it",
        ) from error
    return function
