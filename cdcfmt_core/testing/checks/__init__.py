"""The requirements of a format, one function each: ``check(subject)`` raises AssertionError.

They need no pytest; :class:`cdcfmt_core.testing.CodecTests` runs them.
"""
