"""The Avro encoding: messages and rows read and written, and their layout."""
