"""Stores: what a target holds."""
