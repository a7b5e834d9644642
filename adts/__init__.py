"""What objects mean: serial specifications, events, dependency relations; one abstract data type a file.

Owns `step(state, invocation)` of every type and which event classes its responses depend on. Must not know that
there are replicas: nothing here counts votes, stores entries or sends messages.
"""
