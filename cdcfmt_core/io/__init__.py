"""Files and topics: sources and sinks."""
