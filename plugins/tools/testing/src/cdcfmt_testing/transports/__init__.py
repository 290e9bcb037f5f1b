"""The conformance kit for transports: tests for every transport, as a class to inherit from.

::

    class TestAcme(TransportTests):
        transport = "acme"

        @pytest.fixture
        def harness(self, tmp_path):
            return AcmeHarness(tmp_path)

It uses a transport through its :class:`~cdcfmt_core.transport.TransportSpec`, and its broker
through a :class:`Harness`; docs/conformance-kit.md describes the tests.
"""

from __future__ import annotations

from cdcfmt_testing.transports.harness import Harness, Login, NotOfferedError
from cdcfmt_testing.transports.subject import SAMPLES, TransportSubject
from cdcfmt_testing.transports.suite import TransportTests

__all__ = [
    "SAMPLES",
    "Harness",
    "Login",
    "NotOfferedError",
    "TransportSubject",
    "TransportTests",
]
