"""The `quorate` command: translates words into calls, nothing else.

Owns arguments, exit codes and what a terminal shows. Must not know a rule of the protocol, the calculus or the store:
what it prints, another room has decided.
"""
