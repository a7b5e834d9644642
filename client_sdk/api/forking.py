"""How objects that hold threads or locks go on in a forked child, which has neither their threads nor whoever holds their locks.

Owns who is told of a fork: first made, first told. Must not know what they do then.
"""

import os
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_after_fork: Final[weakref.WeakKeyDictionary[Any, Callable[[Any], None]]] = weakref.WeakKeyDictionary()


def in_child(thing: T, mend: Callable[[T], None]) -> None:
    """Have `mend(thing)` called in every child that is forked while `thing` lives. `mend` must not hold it itself."""
    _after_fork[thing] = mend


def _tell_all() -> None:
    for thing, mend in list(_after_fork.items()):
        mend(thing)


os.register_at_fork(after_in_child=_tell_all)
