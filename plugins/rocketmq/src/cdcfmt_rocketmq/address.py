"""``rocketmq://host:port/topic,…?option=…``: what an address on the command line stands for."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from cdcfmt_core.errors import OptionError
from cdcfmt_rocketmq.settings import NAME_SERVERS


def options_of_url(url: str) -> dict[str, str]:
    """Options by name; those behind the question mark come as they are.

    :raises OptionError: for an address without a name server, or with a password in it.
    """
    parts = urlsplit(url)
    topics = parts.path.strip("/")
    if "@" in parts.netloc:
        raise OptionError(
            "a rocketmq:// input takes no user and password in its address: give "
            "-o rocketmq.accessKey=… and -o rocketmq.secretKey=…"
        )
    if not parts.netloc:
        raise OptionError("a rocketmq:// input is written rocketmq://host:port/topic")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    options[NAME_SERVERS] = parts.netloc
    if topics:
        options["subscribe"] = topics
    return options
