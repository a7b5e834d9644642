"""From aggregates to figures, and the tables they are written to."""
