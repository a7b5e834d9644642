"""Quorum choices: which initial and final quorums a data type needs, and the minimal ones. Pure."""
