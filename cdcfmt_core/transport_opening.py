"""Open a transport's source, sink or drain by the given options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import Option, split_by_owner, validate
from cdcfmt_core.transport import Drain, Sink, Source, TransportSpec


def split_options(
    spec: TransportSpec, given: Mapping[str, str], *, writing: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Split options into the ``values`` and ``settings`` of :class:`TransportSpec`.

    :raises OptionError: for an unknown option or an invalid value.
    """
    return _split(spec, given, spec.sink_options if writing else spec.options)


def _split(
    spec: TransportSpec, given: Mapping[str, str], options: Iterable[Option]
) -> tuple[dict[str, Any], dict[str, str]]:
    options = tuple(options)
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
