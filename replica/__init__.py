"""The replica: a machine without I/O, its SQLite store, the HTTP application.

Owns what a replica promises and that a promise is on disk before it is told. Must not know why a front end asks:
quorums are counted elsewhere. This file imports no store and no HTTP, because Python runs it before the pure machine.
"""
