"""Replication of source tables into lakehouse tables (docs/sync.md)."""

from pyspark_cdcfmt.sync.job import log, status, sync

__all__ = ["log", "status", "sync"]
