"""``python -m pyspark_cdcfmt.demo``: a tour of real messages, without a network."""
