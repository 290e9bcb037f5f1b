"""Shared parts of topic sources: options, checkpoints, schema search."""
