"""Reading: slices of an input, what is known of its tables, and the readers Spark calls."""
