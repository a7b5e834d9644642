"""Worlds of a type of one's own: one object of a class, and what its callers call.

Owns the derivation from the seed. It must not know what is right.
"""

import random
from typing import Final

from msgspec.structs import replace

from ...adts.plain_class import PlainClass, frozen
from ...adts.specification import Invocation
from ...api_specs.cluster import ChoiceRule, checked
from ...client_sdk.protocol.core.values import Invoke, Operation
from .scenario import Caller, Scenario, scenario
from .varied import varied

TYPE: Final = "own"
OBJECT: Final = "own/x"


def own(seed: int, found: PlainClass, code: str) -> Scenario:
    """The scenario of a seed: one object of this type, whose `code` the cluster document names."""
    what = varied(seed)
    if what.is_forgetful:
        what = scenario(seed)
    rng = random.Random(f"own {seed}")
    total = sum(what.document.votes.values())
    decide = rng.randint(1, total)
    chosen = ChoiceRule(f"{TYPE}/*", {"Call/Ok": (total + 1 - decide, decide)}, collect=rng.random() < 0.9)
    document = checked(replace(what.document, types={TYPE: code}, choices=(chosen,)))
    return replace(what, document=document, objects=(OBJECT,), drawn=found)


class OwnCaller(Caller):
    """A caller of such a type."""

    def __init__(self, what: Scenario, found: PlainClass, who: str, rng: random.Random) -> None:
        super().__init__(what, who, rng)
        self._type: Final = found
        self._each_another: Final = what.each_another

    def _invented(self) -> Operation:
        operation, arguments = self._rng.choice(list(self._type.arguments.items()))
        args = [
            frozen(self._value() if name in self._each_another else self._rng.choice(values))
            for name, values in arguments.items()
        ]
        return Invoke(OBJECT, self._type, Invocation(operation, tuple(args)))
