"""`quorate measure` and `quorate report`."""
