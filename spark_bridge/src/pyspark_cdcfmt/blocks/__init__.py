"""Blocks: the messages of a batch by table, packed, each with a summary of its events."""
