"""How objects that hold threads or locks go on in a forked child, which has neither their threads nor whoever holds their locks.

Owns who is told of a fork: first made, first told. Must not know what they do then.
"""

import os
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_renewals: Final[weakref.WeakKeyDictionary[Any, Callable[[Any], None]]] = weakref.WeakKeyDictionary()


def in_child(thing: T, renew: Callable[[T], None]) -> None:
    """Have `renew(thing)` called in every child that is forked while `thing` lives. `renew` must not hold it itself."""
    _renewals[thing] = renew


def _renew_all() -> None:
    for thing, renew in list(_renewals.items()):
        renew(thing)


os.register_at_fork(after_in_child=_renew_all)
