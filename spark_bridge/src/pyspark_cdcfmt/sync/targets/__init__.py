"""Targets: table formats that sync writes to."""
