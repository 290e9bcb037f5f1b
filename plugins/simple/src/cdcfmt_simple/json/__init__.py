"""The JSON encoding: rows read and written, and their layout."""
