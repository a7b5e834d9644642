"""`quorate bench`: how quick a running cluster is."""
