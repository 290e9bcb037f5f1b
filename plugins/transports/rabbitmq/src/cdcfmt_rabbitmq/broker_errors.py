"""Reasons why a broker does not answer, or rejects a request."""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import Final

import attrs

from cdcfmt_rabbitmq.settings import ConnectionSettings, Protocol

NO_ANSWER: Final = "no answer in time"

_CERTIFICATES: Final = {"9": float("inf"), "10": 25, "11": 19, "12": 1}
"""First patch release of each RabbitMQ 3.x whose streams accept a certificate as login."""


@attrs.frozen
class BrokerError(Exception):
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


def no_answer(settings: ConnectionSettings, protocol: Protocol, error: BrokerError) -> str:
    """The text of the error that users see."""
    where = f"RabbitMQ at {settings.show(protocol)}"
    if error.complete:
        return f"{where}: {error}"
    if error.passing:
        plugin = " (the plugin rabbitmq_stream)" if protocol == "streams" else ""
        return (
            f"{where} does not answer ({error}); check rabbitmq.hosts, rabbitmq.tls, that the "
            f"broker runs and listens there{plugin}, and which address it advertises"
        )
    return (
        f"{where}: {error}; check rabbitmq.username, rabbitmq.password, rabbitmq.virtual.host, "
        "rabbitmq.sasl.mechanism, and the user's permissions"
    )


def of_stream(error: Exception) -> BrokerError:
    """The broker error for an exception of the stream protocol."""
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
    if isinstance(error, BrokerError):
        return error
    if isinstance(error, exceptions.StreamDoesNotExist):
        return BrokerError("there is no such stream", passing=False, missing=True, complete=True)
    if type(error) in refused:
        return BrokerError(refused[type(error)], passing=False)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(error)
    if isinstance(error, AssertionError):
        return BrokerError("it does not offer this way to log in", passing=False)
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        return BrokerError(NO_ANSWER)
    return BrokerError(_named(error))


def _untrusted(error: ssl.SSLCertVerificationError) -> BrokerError:
    return BrokerError(
        f"its certificate is not trusted: {error.verify_message}; rabbitmq.ssl.ca.location is the "
        "PEM file of its authority",
        passing=False,
        complete=True,
    )


def of_certificate(version: str) -> BrokerError | None:
    """Why a broker of this version does not answer a login by certificate; None if it should.

    Older versions crash (rabbitmq-server #8488), and the client gets no answer.
    """
    found = re.match(r"3\.(9|10|11|12)\.(\d+)", version)
    if found is None or int(found[2]) >= _CERTIFICATES[found[1]]:
        return None
    return BrokerError(
        f"RabbitMQ {version} cannot use a certificate as login of streams, which was fixed in "
        "3.10.25, 3.11.19 and 3.12.1: update it, or log in with PLAIN, which also works with TLS",
        passing=False,
        complete=True,
    )


def of_code(code: int) -> BrokerError:
    """The broker error for a response code of the stream protocol."""
    from rstream.exceptions import ServerError

    return of_stream(ServerError.from_code(code)())


def of_queue(error: Exception) -> BrokerError:
    """The broker error for an exception of pika."""
    from pika import exceptions

    if isinstance(error, BrokerError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(error)
    if isinstance(error, exceptions.ProbableAuthenticationError | exceptions.AuthenticationError):
        return BrokerError("it refuses the login", passing=False)
    if isinstance(error, exceptions.ProbableAccessDeniedError):
        return BrokerError("the virtual host does not exist, or the user may not use it", False)
    if isinstance(error, exceptions.ChannelClosedByBroker):
        text = str(error.reply_text)
        if error.reply_code == 404:
            return BrokerError(text, passing=False, missing=True)
        if "rabbit_stream_queue" in text:
            text = "this is a stream, which keeps its messages: read it by its port (5552)"
            return BrokerError(text, passing=False, complete=True)
        # The broker may not have noticed yet that the previous consumer was killed.
        return BrokerError(text, passing="exclusive use" in text)
    if isinstance(error, exceptions.ConnectionClosedByBroker):
        return BrokerError(str(error.reply_text), passing=error.reply_code not in (530, 540))
    return BrokerError(_named(error))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
