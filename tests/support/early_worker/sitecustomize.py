"""Connects the Python process of ``foreachBatch`` to its server before it imports anything.

Spark waits ten seconds for the connection; pandas and gRPC, imported before it, take longer on a
busy machine.  Needs ``spark.python.unix.domain.socket.enabled``, as its connections have no secret.
"""

import os
import socket
import sys

_PATH = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH")

if _PATH and any("foreach_batch_worker" in word for word in sys.orig_argv):
    early = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    early.connect(_PATH)
    connect = socket.socket.connect

    def connect_once(self: socket.socket, address: object) -> None:
        if address != _PATH:
            connect(self, address)  # type: ignore[arg-type]
            return
        os.dup2(early.fileno(), self.fileno())
        early.close()

    socket.socket.connect = connect_once  # type: ignore[method-assign]
