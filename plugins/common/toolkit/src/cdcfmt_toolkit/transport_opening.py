"""Choose a transport by the given options, and open its source, sink or drain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import Option, split_by_owner, validate
from cdcfmt_core.registry import Registry
from cdcfmt_core.transport import Drain, Sink, Source, TransportSpec


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


def split_options(
    spec: TransportSpec, given: Mapping[str, str], *, writing: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Split options into the ``values`` and ``settings`` of :class:`TransportSpec`.

    :raises OptionError: for an unknown option or an invalid value.
    """
    return _split(spec, given, spec.sink_options if writing else spec.options)


def _split(
    spec: TransportSpec, given: Mapping[str, str], options: tuple[Option, ...]
) -> tuple[dict[str, Any], dict[str, str]]:
    values, settings = split_by_owner(given, options, prefix=spec.prefix, owner=spec.title)
    return validate(values, options, owner=spec.title), settings


def open_source(
    spec: TransportSpec, values: Mapping[str, Any], settings: Mapping[str, str]
) -> Source:
    """The source of a transport that can be read repeatedly.

    :raises OptionError: for a transport that cannot, and for incompatible options.
    """
    if spec.open_source is None:
        if spec.open_drain is not None:
            raise OptionError(
                f"{spec.title} delivers each message only once, so it cannot be read directly: "
                "move its messages into a folder with cdcfmt drain, and read that"
            )
        raise OptionError(f"{spec.title} can only be written")
    return spec.open_source(values, settings)


def open_sink(spec: TransportSpec, values: Mapping[str, Any], settings: Mapping[str, str]) -> Sink:
    """The sink of a transport.

    :raises OptionError: for a read-only transport, and for options without a topic.
    """
    if spec.open_sink is None:
        raise OptionError(f"{spec.title} is read-only")
    return spec.open_sink(values, settings)


def open_drain(spec: TransportSpec, given: Mapping[str, str]) -> AbstractContextManager[Drain]:
    """A queue of a transport to drain, from options as users spell them.

    :raises OptionError: for a transport without queues, and for incompatible options.
    """
    if spec.open_drain is None:
        raise OptionError(f"{spec.title} has no queues to drain; read it directly")
    return spec.open_drain(*_split(spec, given, spec.drain_options))
