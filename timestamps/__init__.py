"""The order of events: timestamps, ballots, the hybrid logical clock.

Owns what it means for one event to come before another, and the text form that sorts the same. Must not know who
asks: no objects, no replicas, no quorums. The wall clock arrives as a value or a small protocol, never by import.
"""
