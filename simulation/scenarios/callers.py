"""Which caller a world has."""

import random

from .leased import LeaseCaller
from .own import OwnCaller
from .scenario import Caller, Scenario


def caller_of(what: Scenario, who: str, rng: random.Random) -> Caller:
    """The caller of one process."""
    if what.drawn is not None:
        return OwnCaller(what, what.drawn, who, rng)
    return Caller(what, who, rng) if what.leasing is None else LeaseCaller(what, what.leasing, who, rng)
