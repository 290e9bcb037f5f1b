"""The official client for the gRPC proxy, imported on use."""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any

from cdcfmt_core.errors import MissingDependencyError, OptionError
from cdcfmt_rocketmq.settings import ConnectionSettings, split_address


class LastError(logging.Handler):
    """The client's last logged error, which says more than its exceptions."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


LAST_ERROR = LastError()


def import_client() -> Any:
    """Import the package ``rocketmq``, without its log file.

    :raises MissingDependencyError: if it is not installed.
    """
    home = os.environ.get("HOME")
    with tempfile.TemporaryDirectory() as folder:
        # On import, it creates a log folder in the home directory, and fails if it cannot.
        os.environ["HOME"] = folder
        try:
            import rocketmq
        except ImportError as error:
            raise MissingDependencyError(
                "the gRPC proxy needs RocketMQ's own client: pip install 'cdcfmt-rocketmq[grpc]'"
            ) from error
        finally:
            if home is None:
                del os.environ["HOME"]
            else:
                os.environ["HOME"] = home
        log = logging.getLogger("rocketmq-python-client")
        for handler in log.handlers:
            handler.close()
        log.handlers = [LAST_ERROR]
    return rocketmq


def configuration(rocketmq: Any, settings: ConnectionSettings, request_seconds: int) -> Any:
    """The client's configuration.

    :raises OptionError: for settings that the client does not support.
    """
    for endpoint in settings.endpoints.split(";"):
        split_address(endpoint, "rocketmq.endpoints")
    tls = settings.tls
    if tls is not None and (tls.certificate or not tls.check or not tls.check_host):
        raise OptionError(
            "options rocketmq.tls.client.*: the gRPC client supports only trustCertPath, and "
            "always checks servers"
        )
    if tls is not None and tls.authorities:
        # The only way to pass trusted authorities.
        os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = tls.authorities
    return rocketmq.ClientConfiguration(
        settings.endpoints,
        rocketmq.Credentials(settings.access_key, settings.secret_key),
        request_timeout=request_seconds,
    )
