"""Table schemas: the store, the scan of an input, and the folder on disk."""
