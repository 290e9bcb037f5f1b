"""What Spark adds to the commands of ``cdcfmt``: checks of the doctor, and types of columns."""
