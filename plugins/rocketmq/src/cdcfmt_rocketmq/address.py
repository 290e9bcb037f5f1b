"""Addresses on the command line: ``rocketmq://host:port/topic,…?option=…``."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from cdcfmt_core.errors import OptionError
from cdcfmt_rocketmq.settings import NAME_SERVERS


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    :raises OptionError: for an address without a name server, or with a password in it.
    """
    parts = urlsplit(url)
    topics = parts.path.strip("/")
    if "@" in parts.netloc:
        raise OptionError(
            "a rocketmq:// address cannot hold user and password: give "
            "-o rocketmq.accessKey=… and -o rocketmq.secretKey=…"
        )
    if not parts.netloc:
        raise OptionError("a rocketmq:// address has the form rocketmq://host:port/topic")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    options[NAME_SERVERS] = parts.netloc
    if topics:
        options["subscribe"] = topics
    return options
