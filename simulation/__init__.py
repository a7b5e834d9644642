"""Simulation: seeded worlds of the shipped machines in virtual time, and whether they kept what is promised.

`history` holds what callers did and heard, `violation` the error of a broken promise. On `scenarios` stands what one seed stands for:
cluster, callers, faults; on `memory` a replica without disk and network. On `world` it happens: replicas, front ends, a network, clocks. On `judging` histories are held against the types.
`run` goes from a scenario to a verdict. Owns no mistake and no schedule by hand: those are for tests. Must not do I/O nor read a clock:
the same seed is the same run.
"""
