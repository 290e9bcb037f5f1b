"""The requirements of a format: one function ``check(subject)`` each, raising AssertionError.

They need no pytest; :class:`cdcfmt_testing.CodecTests` runs them.
"""
