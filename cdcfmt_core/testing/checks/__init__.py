"""What a format must do, a function for each: ``check(subject)`` raises AssertionError.

They need no pytest; :class:`cdcfmt_core.testing.CodecTests` runs them.
"""
