"""Measured availability against quorum choices, on Spark, written as self-contained reports.

Owns the traces, their aggregates and the pages made of them. Must not know the protocol: it reads quorum choices
from `quorate.quorums` and recorded measurements, and talks to no replica.
"""
