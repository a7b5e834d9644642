"""Scenarios: what one seed stands for, the faults that may be named, and what callers call."""
