"""Decisions on one object: ballots, fences, the accept, summaries, leases, and forwarding to a leader. Pure."""
