"""``python -m pyspark_cdcfmt.demo``: a tour over real messages, without a network."""
