"""Other people's libraries over Quorate: each module lets one of them keep its state on the replicas.

Owns the step from a library's own interface to the SDK. Must not know how operations run, nor replicas. Each module needs
its library, which an extra of the same name installs; this file imports none of them.
"""
