"""Spark's parts of the commands of ``cdcfmt``: checks of the doctor, and types of columns."""
