"""Forwarding in worlds where the host meets its end at the worst moment, and that it pays where nothing goes wrong."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from msgspec.structs import replace

from quorate.api_specs.messages import Denied, ForwardedRequest, Granted
from quorate.replica.protocol.at_most_once import AtMostOnce
from quorate.simulation.run import judge
from quorate.simulation.scenarios.faults import NO_FAULTS
from quorate.simulation.scenarios.scenario import Scenario, scenario
from quorate.simulation.violation import Violation
from quorate.simulation.world import asking
from quorate.simulation.world.world import World
from tests.sim.planted.plant import Hint, patched
from tests.sim.planted.worlds import QUEUE, chosen, only

DOWN_US = 30_000
COPY_US = 100_000
SHARED = Hint(
    QUEUE,
    chosen("queue", (0, 2), (2, 2)),
    fields={
        "fronts": 4,
        "processes": 1,
        "operations": 15,
        "think_us": 1_000,
        "deadline_s": 1.0,
        "keyed": 0.0,
        "is_exact": False,
        "prunes": False,
        **only(Enq=4, Deq=4),
    },
)


def shared(seed: int, *, is_routed: bool) -> Scenario:
    """Four front ends that enqueue and dequeue on one queue; nothing goes wrong by itself."""
    return replace(SHARED.apply(scenario(seed)), faults=NO_FAULTS, is_routed=is_routed)


def dying_at(nth: int, *, is_copied: bool) -> AbstractContextManager[None]:
    """The host of the nth ask that takes something dies with the answer in its hand, and comes back soon; then a copy of the
    ask arrives, if `is_copied`."""
    right: Callable[..., None] = asking.Serving._reply
    taken = 0

    def reply(self: asking.Serving, results: tuple[Granted | Denied, ...]) -> None:
        nonlocal taken
        taken += any(isinstance(each, Granted) and each.entries for each in results)
        if taken != nth:
            right(self, results)
            return
        taken += 1
        node, world = self._node, self._node.world
        world.later(0, node.crash)
        assert isinstance(world, World)
        world.later(DOWN_US, world.restart_replica, node)
        if is_copied:
            world.later(COPY_US, asking._arrive, self._under_way, node)

    return patched(asking.Serving, _reply=reply)


def run(seed: int, nth: int, *, is_copied: bool) -> World:
    world = World(shared(seed, is_routed=True))
    with dying_at(nth, is_copied=is_copied):
        world.run()
    judge(world)
    return world


@pytest.mark.parametrize("is_copied", [False, True], ids=["once", "copied"])
@pytest.mark.parametrize("nth", [1, 2, 5])
def test_a_host_that_dies_with_the_answer_in_its_hand_leaves_an_unknown_outcome(
    nth: int, is_copied: bool
) -> None:
    unknown = 0
    for seed in range(1, 9):
        world = run(seed, nth, is_copied=is_copied)
        unknown += world.history.outcomes.get("unknown (indefinite)", 0)
    assert unknown >= 4


def test_a_copy_that_finds_the_next_incarnation_would_take_a_second_item_if_that_one_served_it() -> None:
    """Shows that the schedule above could fail: without the rule, what the copy takes is nobody's."""

    def problem(self: AtMostOnce, ask: ForwardedRequest, incarnation: str, now_us: int) -> None:
        del self, ask, incarnation, now_us

    caught = 0
    for seed in range(1, 13):
        with patched(AtMostOnce, problem=problem):
            try:
                run(seed, 2, is_copied=True)
            except Violation:
                caught += 1
    assert caught >= 2


def test_front_ends_that_share_a_queue_depose_each_other_far_less_when_they_forward() -> None:
    lost: dict[bool, int] = {}
    for is_routed in (False, True):
        worlds = [World(shared(seed, is_routed=is_routed)) for seed in range(1, 6)]
        for world in worlds:
            world.run()
            judge(world)
            failed = [word for word in world.history.outcomes if word.endswith("definite)")]
            assert not failed, world.history.outcomes
        lost[is_routed] = sum(world.counters.get("terms lost", 0) for world in worlds)
        handed = sum(world.counters.get("commands forwarded", 0) for world in worlds)
        assert (handed > 50) is is_routed
    assert lost[True] < lost[False] / 2, lost
