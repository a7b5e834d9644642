"""Judging: whether a history is one that the objects' types allow, with leases and with clocks that may be wrong."""
