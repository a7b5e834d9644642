"""Which replicas must answer: intersection constraints, quorum choices, quorum systems, availability, load.

Owns the step from a dependency relation to all minimal quorum choices, and what each choice costs. Must not know
how a quorum is reached: no messages, no timeouts, no state of any replica.
"""
