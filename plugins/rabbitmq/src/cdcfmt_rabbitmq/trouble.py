"""Reasons why a broker does not answer, or rejects a request."""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import Final

import attrs

from cdcfmt_rabbitmq.settings import Protocol, Settings

_CERTIFICATES: Final = {"9": float("inf"), "10": 25, "11": 19, "12": 1}
"""First patch release of each RabbitMQ 3.x whose streams accept a certificate as login."""


@attrs.frozen
class TroubleError(Exception):
    """A request that failed.

    - ``passing``: a retry may succeed, for example after a restart of the broker
    - ``missing``: the stream or queue does not exist
    - ``complete``: the text needs no hint about options
    """

    reason: str
    passing: bool = True
    missing: bool = False
    complete: bool = False

    def __str__(self) -> str:
        return self.reason


def no_answer(settings: Settings, protocol: Protocol, trouble: TroubleError) -> str:
    """The text of the error that users see."""
    where = f"RabbitMQ at {settings.show(protocol)}"
    if trouble.complete:
        return f"{where}: {trouble}"
    if trouble.passing:
        plugin = " (the plugin rabbitmq_stream)" if protocol == "streams" else ""
        return (
            f"{where} does not answer ({trouble}); check rabbitmq.hosts, rabbitmq.tls, that the "
            f"broker runs and listens there{plugin}, and which address it advertises"
        )
    return (
        f"{where}: {trouble}; check rabbitmq.username, rabbitmq.password, rabbitmq.virtual.host, "
        "rabbitmq.sasl.mechanism, and the user's permissions"
    )


def of_stream(error: Exception) -> TroubleError:
    """The trouble that an error of the stream protocol means."""
    from rstream import exceptions

    refused: dict[type[Exception], str] = {
        exceptions.AuthenticationFailure: "it refuses the login",
        exceptions.SASLError: "it refuses the login",
        exceptions.SASLAuthenticationFailureLoopback: "this user can log in only from the broker's "
        "own machine",
        exceptions.SASLMechanismNotSupported: "it does not offer this way to log in",
        exceptions.VirtualHostAccessFailure: "the virtual host does not exist, or the user may "
        "not use it",
        exceptions.AccessRefused: "the user lacks the permission",
    }
    if isinstance(error, TroubleError):
        return error
    if isinstance(error, exceptions.StreamDoesNotExist):
        return TroubleError("there is no such stream", passing=False, missing=True, complete=True)
    if type(error) in refused:
        return TroubleError(refused[type(error)], passing=False)
    if isinstance(error, ssl.SSLCertVerificationError):
        return TroubleError(f"its certificate is not trusted: {error.verify_message}", False)
    if isinstance(error, AssertionError):
        return TroubleError("it does not offer this way to log in", passing=False)
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        return TroubleError("no answer in time")
    return TroubleError(_named(error))


def of_certificate(version: str) -> TroubleError | None:
    """Why a broker of this version does not answer a login by certificate; None if it should.

    Older versions crash (rabbitmq-server #8488), and the client gets no answer.
    """
    found = re.match(r"3\.(9|10|11|12)\.(\d+)", version)
    if found is None or int(found[2]) >= _CERTIFICATES[found[1]]:
        return None
    return TroubleError(
        f"RabbitMQ {version} cannot use a certificate as login of streams, which was fixed in "
        "3.10.25, 3.11.19 and 3.12.1: update it, or log in with PLAIN, which also works with TLS",
        passing=False,
        complete=True,
    )


def of_code(code: int) -> TroubleError:
    """The trouble that a response code of the stream protocol means."""
    from rstream.exceptions import ServerError

    return of_stream(ServerError.from_code(code)())


def of_queue(error: Exception) -> TroubleError:
    """The trouble that an error of pika means."""
    from pika import exceptions

    if isinstance(error, TroubleError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return TroubleError(f"its certificate is not trusted: {error.verify_message}", False)
    if isinstance(error, exceptions.ProbableAuthenticationError | exceptions.AuthenticationError):
        return TroubleError("it refuses the login", passing=False)
    if isinstance(error, exceptions.ProbableAccessDeniedError):
        return TroubleError("the virtual host does not exist, or the user may not use it", False)
    if isinstance(error, exceptions.ChannelClosedByBroker):
        text = str(error.reply_text)
        if error.reply_code == 404:
            return TroubleError(text, passing=False, missing=True)
        if "rabbit_stream_queue" in text:
            text = "this is a stream, which keeps its messages: read it by its port (5552)"
            return TroubleError(text, passing=False, complete=True)
        # The broker may not have noticed yet that the previous consumer was killed.
        return TroubleError(text, passing="exclusive use" in text)
    if isinstance(error, exceptions.ConnectionClosedByBroker):
        return TroubleError(str(error.reply_text), passing=error.reply_code not in (530, 540))
    return TroubleError(_named(error))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
