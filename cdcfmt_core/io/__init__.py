"""Files as a source and a sink, and the shared parts of sources of topics."""
