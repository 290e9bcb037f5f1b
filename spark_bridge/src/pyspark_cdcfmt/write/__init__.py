"""Writing: rows to messages, and Spark's writers of files and topics."""
