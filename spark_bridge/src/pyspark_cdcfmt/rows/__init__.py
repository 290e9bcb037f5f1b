"""Conversion between events and rows of both shapes: types, values, variants, JSON."""
