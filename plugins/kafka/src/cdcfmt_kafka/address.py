"""Addresses on the command line: ``kafka://host:port,…/topic,…?option=…``."""

from __future__ import annotations

from cdcfmt_core.transport_opening import split_address


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    secrets = "-o kafka.sasl.username=… and -o kafka.sasl.password=…"
    servers, topics, options = split_address(url, "topic", secrets=secrets)
    options["kafka.bootstrap.servers"] = servers
    if topics := topics.strip("/"):
        options["subscribe"] = topics
    return options
