"""Files as source and sink, and the shared parts of topic sources."""
