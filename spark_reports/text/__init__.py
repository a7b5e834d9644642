"""The sentences of a report."""
