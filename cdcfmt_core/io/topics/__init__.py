"""Shared parts of sources with ranges of offsets: options, checkpoints, schema search."""
