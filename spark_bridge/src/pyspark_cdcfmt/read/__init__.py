"""Reading: slices of an input, the schemas of its tables, and the readers that Spark calls."""
