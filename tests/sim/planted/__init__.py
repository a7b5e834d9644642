"""Planted mistakes: each drops one rule of the protocol, in this process and for a while, and a checker must notice.

Owns the mistakes, the worlds in which they show soonest, and the numbers of seeds within which they must be caught. It
must not be reachable from what is shipped: everything is done by replacing functions of the modules from here.
"""
