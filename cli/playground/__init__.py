"""`quorate playground`: replicas that may be killed on the live page."""
