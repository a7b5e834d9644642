"""`quorate demo`."""
