"""Bundled data types, as plain classes: a cluster file serves one by its name, as `visits = "quorate.adts.library:Counter"`.

`numbers` counts, `collections` keeps values, `lock` excludes. Each is a class as users write them: attributes are the state, methods the
operations, exceptions of its own are outcomes.
"""

from .collections import Directory, Empty, Journal, Missing, Present, PriorityQueue, Set, Stack
from .lock import Held, Lock, NoOwner, NotHeld
from .numbers import Account, BadAmount, BoundedCounter, Counter, Full, Overdraft

__all__ = [
    "Account",
    "BadAmount",
    "BoundedCounter",
    "Counter",
    "Directory",
    "Empty",
    "Full",
    "Held",
    "Journal",
    "Lock",
    "Missing",
    "NoOwner",
    "NotHeld",
    "Overdraft",
    "Present",
    "PriorityQueue",
    "Set",
    "Stack",
]
