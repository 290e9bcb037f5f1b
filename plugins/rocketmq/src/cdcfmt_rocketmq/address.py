"""Addresses on the command line: ``rocketmq://host:port/topic,…?option=…``."""

from __future__ import annotations

from cdcfmt_core.transport_opening import split_address
from cdcfmt_rocketmq.settings import NAME_SERVERS


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    :raises OptionError: for an address without a name server, or with a password in it.
    """
    secrets = "-o rocketmq.accessKey=… and -o rocketmq.secretKey=…"
    servers, topics, options = split_address(url, "topic", secrets=secrets)
    options[NAME_SERVERS] = servers
    if topics := topics.strip("/"):
        options["subscribe"] = topics
    return options
