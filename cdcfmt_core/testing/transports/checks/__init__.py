"""The requirements of a transport, one function each: ``check(subject)`` raises AssertionError.

They need no pytest; :class:`cdcfmt_core.testing.transports.TransportTests` runs them.
"""
