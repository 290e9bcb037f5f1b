"""Helpers for authors of formats: JSON and Avro wires, value encodings, large messages."""
