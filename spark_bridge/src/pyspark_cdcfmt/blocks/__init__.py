"""Blocks: packed messages of a batch by table, each block with a summary of its events."""
