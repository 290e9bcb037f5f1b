"""The conformance kit of transports: the tests of each, which its author inherits.

::

    class TestAcme(TransportTests):
        transport = "acme"

        @pytest.fixture
        def harness(self, tmp_path):
            return AcmeHarness(tmp_path)

It knows a transport by its :class:`~cdcfmt_core.transport.TransportSpec`, and its broker by a
:class:`Harness`; docs/conformance-kit.md says what it looks at.
"""

from __future__ import annotations

from cdcfmt_core.testing.transports.harness import Harness, Login, NotOfferedError
from cdcfmt_core.testing.transports.samples import SAMPLES
from cdcfmt_core.testing.transports.subject import TransportSubject
from cdcfmt_core.testing.transports.suite import TransportTests

__all__ = [
    "SAMPLES",
    "Harness",
    "Login",
    "NotOfferedError",
    "TransportSubject",
    "TransportTests",
]
