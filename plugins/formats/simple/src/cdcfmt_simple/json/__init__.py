"""The JSON message encoding: decoder, encoder and layout of rows."""
