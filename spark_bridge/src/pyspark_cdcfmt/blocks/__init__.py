"""Blocks: packed messages of a batch by table, each block with a summary of its events.

A private room of :mod:`pyspark_cdcfmt.sync`, beside it so that Spark's workers import only this.
"""

BLOCKS_OPTION = "__cdcfmt_blocks"
"""For sync: a stream of blocks of events.  The name is not a user option."""
