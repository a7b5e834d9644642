"""Each fault is a named option, does what its name says, and is not there unless named; failures say how to replay them."""

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.specification import Kind
from quorate.quorums.systems.tally import VoteCount
from quorate.simulation import run as runner
from quorate.simulation.run import run
from quorate.simulation.scenarios.faults import NO_FAULTS, Faults
from quorate.simulation.scenarios.scenario import Scenario, scenario
from quorate.simulation.scenarios.varied import varied, with_faults
from quorate.simulation.violation import Violation
from quorate.simulation.world.world import World
from tests.sim.own import burying
from tests.sim.run import run_seed
from tests.sim.sometimes import FAULTS

OPTIONS: dict[str, dict[str, Any]] = {
    "packets lost": {"loss": 0.2},
    "packets doubled": {"duplication": 0.2},
    "packets late": {"tail": 0.2},
    "packets slow": {"slow_throughout": 2},
    "packets cut off": {"cuts": 9},
    "packets overtaken": {"newest_first": 5},
    "slow links": {"slow_links": 2},
    "slow throughout": {"slow_throughout": 2},
    "newest first": {"newest_first": 5},
    "cuts": {"cuts": 2},
    "partitions": {"partitions": 2},
    "crashes": {"crashes": 2},
    "slow replicas": {"slow_replicas": 2},
    "freezes": {"freezes": 2},
    "client crashes": {"client_crash_at": 20},
    "client freezes": {"client_freezes": 2},
    "clock steps": {"clock_steps": 2, "client_skew_us": 1_000},
    "replica clock steps": {"replica_clock_steps": 2, "replica_skew_us": 1_000},
    "drifting clocks": {"drift_ppm": 200},
    **{name: {"leaps": 30, "leap_us_max": 60_000_000} for name in FAULTS if name.startswith("leaps ")},
    "cancels": {"cancels": 0.5},
    "lazy messages lost": {"lazy_loss": 0.5},
}
"""By what is counted: the options that bring it about."""

SEED = 100


def quiet(faults: Faults = NO_FAULTS) -> Scenario:
    """Three front ends on three replicas; nothing goes wrong but these faults."""
    what = replace(
        scenario(SEED),
        fronts=3,
        processes=1,
        operations=16,
        objects=("queue/q", "register/r"),
        think_us=10_000,
    )
    return with_faults(what, faults)


def test_without_any_fault_nothing_is_injected() -> None:
    assert sum(run(quiet()).injected.values()) == 0


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_comes_about_by_its_option_alone(name: str) -> None:
    injected = run(quiet(Faults(**OPTIONS[name]))).injected
    assert injected[name] > 0
    known = {other for other, options in OPTIONS.items() if options.keys() & OPTIONS[name].keys()}
    assert set(injected) <= known | {"packets cut off", "packets slow", "packets overtaken"}


def test_every_fault_is_an_option_that_some_seed_draws() -> None:
    drawn = [worlds(seed).faults for worlds in (varied, burying) for seed in range(1, 500)]
    for name in Faults.__struct_fields__:
        assert any(getattr(faults, name) != getattr(NO_FAULTS, name) for faults in drawn), name


def test_a_stopped_replica_keeps_what_comes_and_its_clock_goes_on() -> None:
    world = World(quiet())
    replica = world.replicas["r1"]
    world.later(0, replica.stop)
    world.later(400_000, replica.go_on)
    stored: list[int] = []
    world.later(399_999, lambda: stored.append(replica.replica.store.arrival()))
    before_us = replica.wall_us
    world.run()
    assert replica.wall_us - before_us == world.now_us
    assert stored == [0]
    assert replica.replica.store.arrival() > 0


def test_clocks_drift_those_of_replicas_and_those_of_front_ends() -> None:
    """By the share that the world draws for each: the replicas' wall clocks until they are as far off as they may be."""
    world = World(quiet(Faults(drift_ppm=200, replica_skew_us=1_000)))
    world._begin()
    clocks = [replica.clock for replica in world.replicas.values()]
    before = [(clock.wall_us, clock.mono_s) for clock in clocks]
    fronts = [front.now.mono_s for front in world.fronts]
    world.now_us += 1_000_000
    walls = [clock.wall_us - wall_us for clock, (wall_us, _) in zip(clocks, before, strict=True)]
    steady = [clock.mono_s - mono_s for clock, (_, mono_s) in zip(clocks, before, strict=True)]
    steady += [front.now.mono_s - mono_s for front, mono_s in zip(world.fronts, fronts, strict=True)]
    assert {abs(round((each - 1) * 1e6)) for each in steady} <= {60, 200}
    assert min(steady) < 1 < max(steady), "some run fast, and some slow"
    assert all(1_000_000 - 200 <= each <= 1_000_000 + 200 for each in walls)
    assert set(walls) != {1_000_000}
    world.now_us += 3_600_000_000
    assert all(abs(clock.skew_us) == 1_000 for clock in clocks)


@pytest.mark.parametrize("seed", [3, 8])
def test_a_front_end_may_crash_at_every_point(seed: int) -> None:
    """It vanishes at its first batch, its second ...: some replicas have its message, some not, and nobody its answer."""
    what = replace(
        scenario(seed), fronts=2, processes=1, operations=7, objects=("queue/q", "register/r"), keyed=0.5
    )
    met: Counter[str] = Counter()
    for point in range(1, 60):
        met.update(run(with_faults(what, Faults(client_crash_at=point))).injected)
    assert met["client crashes"] > 20, met


def test_an_embedded_front_end_dies_with_its_replica_and_comes_back() -> None:
    world = World(replace(quiet(), embedded=2))
    world.later(30_000, world.replicas["r1"].crash)
    world.later(90_000, world.restart_replica, world.replicas["r1"])
    world.run()
    homes = [(front.home.id, front.is_alive) for front in world.fronts if front.home is not None]
    assert homes == [("r1", False), ("r2", True), ("r1", True)]
    served = {call.who[:2] for calls in world.history.calls.values() for call in calls}
    assert {"f1", "f2", "f3"} <= served


def test_the_runner_takes_faults_by_name() -> None:
    command = [sys.executable, "-m", "tests.sim.run", "--seed", "5"]
    told = subprocess.run(
        [*command, "--fault", "loss=0.4", "--fault", "crashes=3"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "loss=0.4" in told.stderr
    assert "'crashes': 3" in told.stdout
    wrong = subprocess.run(
        [*command, "--fault", "los=0.4"], capture_output=True, text=True, timeout=60, check=False
    )
    assert wrong.returncode == 2
    assert "no fault is named 'los': use loss, " in wrong.stderr


def test_a_failure_shows_the_end_of_the_run_and_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: object) -> int:
        raise Violation("planted")

    monkeypatch.setattr(runner, "judge", judge)
    with pytest.raises(Violation) as caught:
        run_seed(SEED)
    trace, replay = caught.value.__notes__
    assert replay == f"replay with: python -m tests.sim.run --seed {SEED} --trace"
    assert 20 < len(trace.splitlines()) <= 200
    assert " invokes " in trace


TRACE_SEEDS = """
import gc, os, re
from quorate.simulation.run import run
from tests.sim.run import WORLDS, bounds_of
SEEDS = {"varied": range(1460, 1468), "own": (17, 23), "library": (8, 9, 14), "full": (4_080_000_016, 4_080_000_022), "small": range(6_000_200_056, 6_000_200_060)}
kept = []
gc.set_threshold(int(os.environ["COLLECT_AFTER"]))
for worlds, seeds in SEEDS.items():
    for seed in seeds:
        kept += [bytearray(hash(str((seed, place))) % 3_000) for place in range(1_000)][::2]
        with bounds_of(worlds):
            run(WORLDS[worlds](seed), lambda line: print(re.sub(" at 0x[0-9a-f]+", "", line)))
"""


def test_the_same_seed_is_the_same_run_in_every_process() -> None:
    """Also where sets come in another order, of names as in every new process, of objects as wherever they lie in memory; and whenever garbage is
    collected: front ends hold some of what they know weakly."""
    traces = [
        subprocess.run(
            [sys.executable, "-c", TRACE_SEEDS],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "COLLECT_AFTER": collect_after},
        ).stdout
        for hash_seed, collect_after in (("1", "100"), ("2", "2000"))
    ]
    assert len(traces[0].splitlines()) > 1_000
    assert traces[0] == traces[1]


CHOICES = {
    ("queue", 3): [(1, 3, 1), (3, 1, 3), (2, 2, 2), (1, 3, 3)],
    ("queue", 5): [(1, 5, 1), (3, 3, 3), (5, 1, 5)],
    ("register", 3): [(3, 1, 3), (1, 3, 1)],
    ("dictionary", 3): [(1, 3, 1), (2, 2, 2), (3, 1, 3)],
}
"""By type and number of replicas with one vote each: blind final, decide initial and decide final votes. With
(0,1)/(3,1), (0,3)/(1,3), majorities, and registers that read one and write all."""


def test_the_scenarios_draw_every_kind_of_choice() -> None:
    met: Counter[tuple[Any, ...]] = Counter()
    votes: Counter[tuple[int, ...]] = Counter()
    mixes: Counter[tuple[Any, ...]] = Counter()
    for seed in range(1, 2_000):
        what = varied(seed)
        given = tuple(what.document.votes.values())
        votes[given] += 1
        mixes[len(what.objects), what.embedded > 0, what.embedded < what.fronts] += 1
        for name in what.objects:
            choice = what.document.choice_of(f"{name}/a" if name.startswith("dictionary/") else name)
            quorums = (
                choice.final_of_kind(Kind.BLIND),
                choice.initial_of_kind(Kind.DECIDE),
                choice.final_of_kind(Kind.DECIDE),
            )
            sizes = tuple(quorum.needed for quorum in quorums if isinstance(quorum, VoteCount))
            met[name.partition("/")[0], len(given) if set(given) == {1} else 0, sizes] += 1
    for (adt, replicas), wanted in CHOICES.items():
        for sizes in wanted:
            assert met[adt, replicas, sizes], (adt, replicas, sizes)
    assert {(2, 1, 1), (1, 1, 1, 0), (3, 1, 1, 1), (1,), (1, 1), (1, 1, 1, 1, 1)} <= votes.keys()
    assert all(mixes[objects, True, True] for objects in (1, 3)), mixes
