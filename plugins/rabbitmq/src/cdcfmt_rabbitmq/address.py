"""Addresses on the command line: ``rabbitmq://host:port/name?option=…``."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from cdcfmt_core.errors import OptionError


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    The last part of the path is the stream or queue; any earlier part is the virtual host.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise OptionError(
            "a rabbitmq:// address cannot hold user and password: give "
            "-o rabbitmq.username=… and -o rabbitmq.password=…"
        )
    if not parts.netloc:
        raise OptionError("a rabbitmq:// address has the form rabbitmq://host:port/stream-or-queue")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    options["rabbitmq.hosts"] = parts.netloc
    host, mark, name = parts.path.removeprefix("/").rpartition("/")
    if mark:
        options["rabbitmq.virtual.host"] = unquote(host)
    if name:
        options["subscribe"] = unquote(name)
    return options
