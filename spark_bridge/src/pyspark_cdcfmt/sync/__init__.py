"""Replication of source tables into lakehouse tables (docs/sync.md)."""

from pyspark_cdcfmt.sync.job import status, sync

__all__ = ["status", "sync"]
