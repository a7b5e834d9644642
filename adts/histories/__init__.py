"""Histories: calls that overlapped, and whether the serial specifications of their objects explain what they returned.

Floors: `verdict` judges object by object; `weak` finds answers of eventual consistency that missed changes; `counterexample` cuts what
has no right order to a part that shows it; `search` looks for an order; `steps` says what a call leads to; `forced` says which orders the items of a queue force, `likely`
which call is tried first, `orders` which call may come before which in a consistency model; `calls` are the values. Must not know how histories are written down.
"""
