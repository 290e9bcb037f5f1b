"""Table schemas: the store in memory, the store on disk, and the scan of an input."""
