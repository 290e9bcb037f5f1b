"""What a target holds: the current rows."""
