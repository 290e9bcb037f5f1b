"""Addresses on the command line: ``kafka://host:port,…/topic,…?option=…``."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from cdcfmt_core.errors import OptionError


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    parts = urlsplit(url)
    topics = parts.path.strip("/")
    if "@" in parts.netloc:
        raise OptionError(
            "a kafka:// address cannot hold user and password: give "
            "-o kafka.sasl.username=… and -o kafka.sasl.password=…"
        )
    if not parts.netloc:
        raise OptionError("a kafka:// address has the form kafka://host:port/topic")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    options["kafka.bootstrap.servers"] = parts.netloc
    if topics:
        options["subscribe"] = topics
    return options
