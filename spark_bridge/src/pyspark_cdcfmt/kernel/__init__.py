"""The compiled kernel's side in Python: opening it, feeding it, and the plans it reads by."""
