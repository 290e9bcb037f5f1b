"""The Python side of the compiled kernel: opens it, feeds it messages, and describes plans."""
