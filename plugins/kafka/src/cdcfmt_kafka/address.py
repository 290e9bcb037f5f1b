"""``kafka://host:port,…/topic,…?option=…``: what an address on the command line stands for."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from cdcfmt_core.errors import OptionError


def options_of_url(url: str) -> dict[str, str]:
    """Options by name; those behind the question mark come as they are.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    parts = urlsplit(url)
    topics = parts.path.strip("/")
    if "@" in parts.netloc:
        raise OptionError(
            "a kafka:// input takes no user and password in its address: give "
            "-o kafka.sasl.username=… and -o kafka.sasl.password=…"
        )
    if not parts.netloc:
        raise OptionError("a kafka:// input is written kafka://host:port/topic")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    options["kafka.bootstrap.servers"] = parts.netloc
    if topics:
        options["subscribe"] = topics
    return options
