"""Seeded simulation of the shipped machines: virtual time, faulty network, crashes, and checkers of what was promised."""
