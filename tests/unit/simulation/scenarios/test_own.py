"""Worlds of a type of one's own, as `quorate types check` runs them: each has what makes front ends meet."""

from quorate.adts.library import Counter
from quorate.adts.plain_class import PlainClass
from quorate.simulation.scenarios.own import OBJECT, shared

COUNTER = PlainClass(Counter)


def test_every_shared_world_has_several_front_ends_crashes_lost_packets_and_keys() -> None:
    worlds = [shared(seed, COUNTER) for seed in range(1, 101)]
    for what in worlds:
        assert 3 <= what.fronts <= 6
        assert what.faults.loss > 0
        assert what.faults.crashes > 0
        assert (what.keyed, what.objects, what.drawn) == (0.3, (OBJECT,), COUNTER)
        assert what.asks_again > 0
    assert {what.fronts for what in worlds} >= {3, 4, 5}
    assert {what.embedded > 0 for what in worlds} == {what.is_routed for what in worlds} == {False, True}


def test_a_seed_is_the_same_world_each_time() -> None:
    assert shared(7, COUNTER) == shared(7, COUNTER) != shared(8, COUNTER)
