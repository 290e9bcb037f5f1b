"""From topics to tables: one call keeps a lakehouse in step with its sources (docs/sync.md)."""

from pyspark_cdcfmt.sync.job import status, sync

__all__ = ["status", "sync"]
