"""The Avro message encoding: decoder, encoder and layout."""
