"""Metrics for Prometheus, and what the replica saw of the others."""
