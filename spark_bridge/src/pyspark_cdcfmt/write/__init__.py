"""Writing: rows to messages, and the writers of files and topics that Spark calls."""
