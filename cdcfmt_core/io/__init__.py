"""Files as a source and a sink, and what all sources of topics share."""
