"""The parts of ``cdcfmt`` commands that need the bridge: ``doctor``, ``schema``, ``convert``."""
