"""What sources with ranges of offsets share: options, checkpoints, searches around a range."""
