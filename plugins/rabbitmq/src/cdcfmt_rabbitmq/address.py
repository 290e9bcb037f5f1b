"""Addresses on the command line: ``rabbitmq://host:port/name?option=…``."""

from __future__ import annotations

from urllib.parse import unquote

from cdcfmt_core.transport_opening import split_address


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    The last part of the path is the stream or queue; any earlier part is the virtual host.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    secrets = "-o rabbitmq.username=… and -o rabbitmq.password=…"
    servers, path, options = split_address(url, "stream-or-queue", secrets=secrets)
    options["rabbitmq.hosts"] = servers
    host, mark, name = path.removeprefix("/").rpartition("/")
    if mark:
        options["rabbitmq.virtual.host"] = unquote(host)
    if name:
        options["subscribe"] = unquote(name)
    return options
