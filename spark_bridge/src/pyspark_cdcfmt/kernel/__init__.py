"""The Python side of the compiled kernel: opening and feeding it, and its plans."""
