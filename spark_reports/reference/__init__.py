"""The aggregates in plain Python: for small inputs, and to check Spark's."""
