"""The front end: a machine without I/O, the transports that drive it, typed handles, errors.

Owns how an operation runs against replicas, from its first message to its response or its error. Must not know how a
replica stores what it promised. This file imports no transport, because Python runs it before the pure machine.
"""
