"""The columnar path: chunks of messages to record batches without a Python row.

A plan is learned from one message and the schema that the reference decoder gave it, and
reads only messages that are like that one (:mod:`~pyspark_cdcfmt.columnar.wire`).  Columns
become Arrow arrays by kernels that accept no text that the reference parsers refuse
(:mod:`~pyspark_cdcfmt.columnar.kernels`), or cell by cell through those parsers
(:mod:`~pyspark_cdcfmt.columnar.converters`).  Images of events are put together from what
each cell is in JSON or a variant (:mod:`~pyspark_cdcfmt.columnar.json_tokens`,
:mod:`~pyspark_cdcfmt.columnar.variant_tokens`).  A message on which anything is unusual goes to the
reference path, alone and in its place (:mod:`~pyspark_cdcfmt.columnar.chunks`).
"""
