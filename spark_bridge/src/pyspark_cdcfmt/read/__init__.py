"""Reading: slices of the input, schemas of its tables, and Spark's readers."""
