"""Where rows go: one small protocol, and what speaks it."""
