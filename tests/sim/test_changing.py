"""Seeded worlds whose members, votes and quorum choices change while they are used.

`python -m tests.sim.soak --worlds changing` (or `queues`, `standing`, `moving`, `dying`, or `dying-in-between`) runs as many more as the time allows.
"""

from typing import Final

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, Fallback, ReplicaInfo, checked
from quorate.client_sdk.protocol import standing_rules
from quorate.simulation.run import Report, run
from quorate.simulation.scenarios.changing import changing
from quorate.simulation.scenarios.faults import NO_FAULTS
from quorate.simulation.scenarios.varied import varied
from quorate.simulation.world.operators import Switcher
from tests.sim.planted.plant import patched
from tests.sim.run import run_seeds

FIRST: Final = 25
SEEDS: Final = 24
SOMETIMES: Final = (
    "changes of configuration",
    "changes taken back",
    "operators vanished",
    "configurations followed",
    "begun again in a new configuration",
    "decisions begun again in a new configuration",
    "calls during a change",
    "calls after a change",
    "Enq/Ok",
    "Deq/Ok",
    "Acquire/Ok",
    "keyed repeats",
)
FAULTS: Final = ("crashes", "cuts", "slow links", "freezes")


OF_LEARNERS: Final = ("learners came", "learners left")
OF_STANDING_RULES: Final = ("switches", "switches taken back")


OF_MEMBERS_THAT_MOVE: Final = ("moves followed",)


MORE: Final = {
    "changing": OF_LEARNERS[:1],
    "moving": OF_MEMBERS_THAT_MOVE,
    "queues": OF_LEARNERS,
    "standing": OF_STANDING_RULES,
}
"""What happens in some of these worlds besides."""


@pytest.mark.parametrize("worlds", MORE)
def test_every_promise_is_kept(worlds: str) -> None:
    report = run_seeds(range(FIRST, FIRST + SEEDS), worlds)
    assert [name for name in (*SOMETIMES, *MORE[worlds]) if not report.counters.get(name)] == []
    assert [name for name in FAULTS if not report.injected.get(name)] == []


def test_what_others_hold_too_outlives_a_member_that_is_declared_dead() -> None:
    report = run_seeds(range(1, SEEDS + 1), "dying")
    assert report.injected["deaths"] > SEEDS / 2
    assert report.counters["changes of configuration"] > SEEDS
    assert [name for name in OF_LEARNERS if not report.counters.get(name)] == []


def test_what_others_hold_too_outlives_one_that_was_to_stay_and_dies_in_the_middle_of_a_change() -> None:
    report = run_seeds(range(1, SEEDS + 1), "dying-in-between")
    assert report.counters["deaths in the middle of a change"] > SEEDS / 3
    assert report.counters["changes that went elsewhere"] > SEEDS


NAMES: Final = ("m1", "m2", "m3", "m4")
CUT: Final = {"m2": "m4", "m4": "m2"}
"""Who takes whom for down."""


def one_cut_link(seed: int) -> Report:
    """A world in which nothing fails but the link between two members, for as long as its callers are there."""
    what = changing(varied(seed))
    members = tuple(ReplicaInfo(name, f"http://{name}:1") for name in NAMES)
    rules = tuple(
        ChoiceRule(name, fallback=Fallback(down=("m4",), after_s=2.0, reads="votes(2; m1:1, m2:1, m3:1)"))
        for name in what.objects
    )
    document = checked(ClusterDocument("sim", members, rules, what.document.clock, what.document.limits))
    what = replace(
        what, document=document, changes=(), faults=NO_FAULTS, keyed=0.0, think_us=1_000_000, operations=20
    )

    def live(self: Switcher, at: ClusterDocument) -> set[str]:
        return set(at.votes) - ({CUT.get(self._own, "")} if not self._world.is_healed else set())

    with patched(Switcher, _live=live):
        return run(what)


def test_one_link_that_is_cut_makes_members_switch_to_and_fro_more_and_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside the same worlds without longer and longer pauses."""
    few = [one_cut_link(seed).counters["switches"] for seed in (1, 2)]
    monkeypatch.setattr(standing_rules, "PAUSE_S_MAX", 0.0)
    many = [one_cut_link(seed).counters["switches"] for seed in (1, 2)]
    assert min(few) > 4
    assert max(few) < min(many) / 2, (few, many)
