"""Files as source and sink of messages, and the drain of queues into files."""
