"""Which keys a store that is made from others leaves out: those that were deleted, and forgotten by some of the others."""

from typing import Any

import pytest

from quorate.adts.log import Summary, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo, checked
from quorate.replica.data_folder.replacement import _is_forgotten
from quorate.replica.protocol.log import ObjectState, PutState
from quorate.simulation.world.store import MemoryStore
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make

KEY = "dictionary/d/k"


@pytest.mark.parametrize(("swapped_at", "is_forgotten"), [((4, 2), False), ((3, 3), True)])
def test_a_key_that_a_swap_may_have_set_where_nothing_was_forgotten_is_kept(
    swapped_at: tuple[int, int], *, is_forgotten: bool
) -> None:
    """r4 alone of four sources has the key; r5 is lost, and the floors of r1 to r3 are above all of it. Two of five may have set it."""
    replicas = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in range(1, 6))
    choice = {"Put/Ok": (2, 3), "Delete/Ok": (2, 3), "Cas/Ok": swapped_at, "PutIfAbsent/Ok": swapped_at}
    document = checked(ClusterDocument("test", replicas, (ChoiceRule("dictionary/*", choice, "clock"),)))
    sources: Any = {f"r{number}": MemoryStore() for number in range(1, 5)}
    t = make(1, 0, "a")
    held = Summary(t, Value("1"))
    sources["r4"].apply(PutState(ObjectState(KEY, accepted=make_ballot(t, 1), summary=held, horizon=t)))
    for each in ("r1", "r2", "r3"):
        sources[each].forget("dictionary/d/other", make(2, 0, "a"))
    assert _is_forgotten(KEY, sources, document) is is_forgotten
