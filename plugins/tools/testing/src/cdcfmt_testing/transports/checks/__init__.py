"""The requirements of a transport: one function ``check(subject)`` each, raising AssertionError.

They need no pytest; :class:`cdcfmt_testing.transports.TransportTests` runs them.
"""
