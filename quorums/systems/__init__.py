"""Quorum systems: which sets of replicas suffice, and how likely enough of them are up. Pure."""
