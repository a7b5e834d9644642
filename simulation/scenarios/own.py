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
from ...quorums.choices.choice import Ordering
from .scenario import Caller, Scenario, scenario
from .varied import OPERATIONS, varied, with_faults

TYPE: Final = "own"
OBJECT: Final = "own/x"
CODE: Final = "simulated:Type"
"""What the cluster file names where nobody imports it."""
FRONTS: Final = (3, 4, 5)
KEYED: Final = 0.3
LOSS_MIN: Final = 0.02


def own(seed: int, found: PlainClass, code: str) -> Scenario:
    """The scenario of a seed: one object of this type, whose `code` the cluster file names."""
    what = varied(seed)
    if what.is_forgetful:
        what = scenario(seed)
    rng = random.Random(f"own {seed}")
    chosen = own_rule(rng, sum(what.document.votes.values()))
    document = checked(replace(what.document, types={TYPE: code}, choices=(chosen,)))
    return with_faults(replace(what, document=document, objects=(OBJECT,), drawn=found), what.faults)


def own_rule(rng: random.Random, total: int) -> ChoiceRule:
    """A random choice of final quorums for the type; initial quorums as small as these allow."""
    call, blind = rng.randint(1, total), rng.randint(1, total)
    ordering: Ordering = rng.choice(["clock", "clock", "quorum"])
    looked = total + 1 - min(call, blind)
    classes = {"Call/Ok": (looked, call), "Blind/Ok": (looked if ordering == "quorum" else 0, blind)}
    return ChoiceRule(f"{TYPE}/*", classes, ordering, collect=rng.random() < 0.9)


def shared(seed: int, found: PlainClass) -> Scenario:
    """As `own`, and always with three to five front ends, which share the object, lost packets, crashes, and repeats of keyed calls."""
    what = own(seed, found, CODE)
    rng = random.Random(f"shared {seed}")
    fronts = max(what.embedded, rng.choice(FRONTS))
    faults = replace(what.faults, loss=max(LOSS_MIN, what.faults.loss), crashes=max(1, what.faults.crashes))
    what = replace(what, fronts=fronts, processes=1, operations=OPERATIONS // fronts)
    return with_faults(replace(what, keyed=KEYED, asks_again=rng.choice([0.2, 1.0])), faults)


class OwnCaller(Caller):
    """A caller of such a type."""

    def __init__(self, what: Scenario, found: PlainClass, who: str, rng: random.Random) -> None:
        super().__init__(what, who, rng)
        self._type: Final = found
        self._each_another: Final = what.each_another

    def _object(self) -> str:
        # The only object is not drawn, so that older worlds stay as they were.
        return super()._object() if len(self._scenario.objects) > 1 else OBJECT

    def _on_object(self, name: str) -> Operation:
        if not name.startswith(f"{TYPE}/"):
            return super()._on_object(name)
        operation, arguments = self._rng.choice(list(self._type.arguments.items()))
        args = [
            frozen(self._value() if argument in self._each_another else self._rng.choice(values))
            for argument, values in arguments.items()
        ]
        return Invoke(name, self._type, Invocation(operation, tuple(args)))
