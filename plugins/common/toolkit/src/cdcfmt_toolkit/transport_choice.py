"""Choose a transport by the given options."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core.errors import OptionError
from cdcfmt_core.registry import Registry
from cdcfmt_core.transport import TransportSpec


def choose_transport(
    names: Iterable[str], registry: Registry, *, writing: bool = False
) -> TransportSpec | None:
    """The transport that options choose; None for files.

    :param names: the given options that only transports have, in lower case.
    :raises OptionError: for options of two transports, or without the option that chooses one.
    :raises CdcfmtError: as :meth:`Registry.transport_of`.
    """
    names = list(names)
    if not names:
        # A read of files imports no transport plugin.
        return None
    chosen = {spec.name: spec for name in names if (spec := registry.transport_of(name))}
    if not chosen:
        chosen = {
            spec.name: spec
            for spec in registry.transports().values()
            if not _choosing(spec, writing).keys().isdisjoint(names)
        }
    if len(chosen) > 1:
        first, *others = (spec.title for spec in chosen.values())
        raise OptionError(
            f"options of several transports: {first} and {' and '.join(others)}; choose one with "
            f"an option such as {min(spec.prefix for spec in chosen.values())}…"
        )
    for spec in chosen.values():
        return spec
    for spec in registry.transports().values():
        for option in spec.sink_options if writing else spec.options:
            if option.name.lower() in names:
                *others, last = [*_choosing(spec, writing).values(), f"{spec.prefix}…"]
                raise OptionError(
                    f"option {option.name} is for {spec.title}; set "
                    f"{', '.join(others)} or {last} to choose it"
                )
    return None


def _choosing(spec: TransportSpec, writing: bool) -> dict[str, str]:
    """Options that select this transport when set, keyed by lower-case name."""
    options = spec.sink_options if writing else spec.options
    return {option.name.lower(): option.name for option in options if option.name in spec.chosen_by}
