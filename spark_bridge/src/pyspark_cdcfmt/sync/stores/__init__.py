"""Stores: the contents of targets."""
