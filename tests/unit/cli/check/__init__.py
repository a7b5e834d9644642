"""`quorate check`."""
