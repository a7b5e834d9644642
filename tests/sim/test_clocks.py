"""What depends on clocks and what does not (DESIGN section 3), each on worlds whose clocks are set for the question.

(a) Under any skew nothing is lost or doubled, and what depends on something sees it. (b) With declared errors that are
true, and commit wait, histories are linearizable. (c) So they are under any skew with `ordering = "quorum"`. (d) Without
either, the order of different producers' enqueues can be off, by the skew, and nothing else.
"""

import random
from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ClockSettings, ClusterDocument, ReplicaInfo, checked
from quorate.api_specs.messages import Append, Batch
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.values import Failed, Operation, Outcome, Read, Write
from quorate.simulation.history import Call
from quorate.simulation.judging.checkers import check_drained, check_object
from quorate.simulation.run import judge, run
from quorate.simulation.scenarios.faults import NO_FAULTS, Faults
from quorate.simulation.scenarios.scenario import BLIND, Scenario, keeps_order, rule, scenario
from quorate.simulation.violation import Violation
from quorate.simulation.world.clocks import WALL_US_START
from quorate.simulation.world.world import World
from quorate.timestamps.timestamp import Timestamp, make, wall_us
from tests.sim.schedules.hand import Hand

SEEDS: Final = 30
SKEW_US: Final = 150_000
WRONG_ORDER: Final = 7
"""A seed in which a skewed producer's item overtakes an older one."""


def with_clocks(seed: int, clock: ClockSettings, faults: Faults, *, is_quorum: bool = False) -> Scenario:
    """The seed's callers on three replicas and three front ends, with these clocks."""
    what = scenario(seed)
    rng = random.Random(f"clocks {seed}")
    document = ClusterDocument(
        "clocks",
        tuple(ReplicaInfo(name, f"http://{name}:1") for name in ("r1", "r2", "r3")),
        tuple(rule(rng, adt, 3, is_quorum=is_quorum) for adt in BLIND),
        clock,
        what.document.limits,
    )
    return replace(
        what,
        document=checked(document),
        fronts=3,
        processes=1,
        operations=16,
        faults=faults,
        is_exact=keeps_order(document, faults),
        embedded=seed % 2,
    )


def rough(**clocks: int) -> Faults:
    return Faults(
        loss=0.05, duplication=0.05, tail=0.05, tail_us_max=50_000, lazy_loss=0.3, crashes=1, **clocks
    )


ANY_SKEW: Final = rough(client_skew_us=SKEW_US, replica_skew_us=SKEW_US, clock_steps=3, replica_clock_steps=3)


@pytest.mark.parametrize("declared", [0.0, None], ids=["declared wrongly", "measured"])
def test_under_any_skew_nothing_is_lost_or_doubled_and_what_depends_sees(declared: float | None) -> None:
    for seed in range(1, SEEDS + 1):
        what = with_clocks(seed, ClockSettings(0.0, declared), ANY_SKEW)
        assert not what.is_exact
        run(what)


def test_clocks_beyond_the_offset_refuse_each_other_and_nothing_is_lost() -> None:
    """What one replica stored and another refuses holds nobody up for longer than the time takes to come near it."""
    faults = rough(client_skew_us=1_500_000, clock_steps=3, replica_skew_us=100_000)
    refused = 0
    for seed in range(1, SEEDS + 1):
        refused += run(with_clocks(seed, ClockSettings(0.0, 0.0), faults)).counters.get("outcomes refused", 0)
    assert refused, "no clock was beyond the offset"


def test_with_true_declared_errors_histories_are_linearizable() -> None:
    faults = rough(client_skew_us=4_000, replica_skew_us=3_000, replica_clock_steps=3)
    for seed in range(1, SEEDS + 1):
        what = with_clocks(seed, ClockSettings(0.003, 0.004), faults)
        assert what.is_exact
        run(what)


def test_with_measured_clocks_histories_are_linearizable_whatever_the_clients_clocks() -> None:
    faults = rough(client_skew_us=1_000_000, clock_steps=3, replica_skew_us=3_000, replica_clock_steps=3)
    for seed in range(1, SEEDS + 1):
        what = with_clocks(seed, ClockSettings(0.003), faults)
        assert what.is_exact
        run(what)


def test_with_ordering_by_quorum_histories_are_linearizable_under_any_skew() -> None:
    for seed in range(1, SEEDS + 1):
        what = with_clocks(seed, ClockSettings(0.0, 0.0), ANY_SKEW, is_quorum=True)
        assert what.is_exact
        run(what)


@pytest.mark.parametrize("is_quorum", [True, False], ids=["by quorum", "by clock"])
@pytest.mark.parametrize("leap_s", [10, 300 * 86_400], ids=["seconds", "months"])
def test_after_clocks_leapt_nothing_is_lost_nor_blocked(leap_s: int, is_quorum: bool) -> None:
    """Replicas' clocks leap either way, all or one, and are set right at the end: then every answer must come. By quorum the order
    holds, too."""
    faults = rough(leaps=4, leap_us_max=leap_s * 1_000_000, drift_ppm=200)
    for seed in range(1, SEEDS // 2 + 1):
        what = with_clocks(seed, ClockSettings(0.0), faults, is_quorum=is_quorum)
        assert what.is_exact == is_quorum
        run(what)


class SetRight(World):
    """Whose replicas' clocks are a minute off, and are set right one after the other. `failed`: the calls that failed, with the outcome."""

    def __init__(self, what: Scenario, off_us: int) -> None:
        super().__init__(what)
        self.failed: list[tuple[str, Failed]] = []
        finish = self.history.finish

        def noted(operation: Operation, calls: list[Call], outcome: Outcome) -> None:
            if isinstance(outcome, Failed):
                self.failed.append((type(operation).__name__, outcome))
            finish(operation, calls, outcome)

        self.history.finish = noted  # type: ignore[method-assign]
        for number, node in enumerate(self.replicas.values()):
            node.leap(off_us)
            self.later(1_000_000 + 300_000 * number, node.leap, 0)


@pytest.mark.parametrize("off_us", [60_000_000, -60_000_000], ids=["ahead", "behind"])
def test_calls_go_on_while_clocks_are_set_right_one_after_the_other(off_us: int) -> None:
    """Front ends learn from the very replies that refuse a stamp of theirs, and give another one; what some replicas have stored already, others take once
    they hear of it. What may be done and may not is left: an entry that some store, and others find behind, and a forwarded request that a coordinator
    finds far from its clock."""
    failed, done, begun_again = list[tuple[str, Failed]](), 0, 0
    for seed in range(1, 7):
        what = with_clocks(seed, ClockSettings(0.003), replace(NO_FAULTS, leaps=1, leap_us_max=1))
        what = replace(
            what,
            processes=2,
            operations=60,
            think_us=50_000,
            deadline_s=4.0,
            is_routed=bool(seed % 2),
            keyed=0.0,
        )
        world = SetRight(replace(what, document=checked(replace(what.document, choices=()))), off_us)
        world.run()
        judge(world)
        failed += world.failed
        done += sum(world.history.outcomes.values())
        begun_again += world.counters.get("begun again since clocks were wrong", 0)
    assert done > 1_500
    assert begun_again > 3
    assert len(failed) <= done / 200
    for name, outcome in failed:
        assert not outcome.definite, outcome
        is_behind = name in ("Enqueue", "Write") and "behind this replica's clock" in outcome.detail
        assert is_behind or "was asked to decide" in outcome.detail, outcome


class FarBehind(World):
    """The first front end's clock is 4 s behind, though it is declared right. Its stamps are above what it has seen all the same, so that some are near.

    `most_us`: how far behind one was when it was given, of what was acknowledged under it, and of all.
    """

    def __init__(self, what: Scenario) -> None:
        super().__init__(what)
        self.most_us = {"acknowledged": 0, "given": 0}
        self.later(0, self._set_back)

    def _set_back(self) -> None:
        front = self.fronts[0]
        front.step_clock(-4_000_000)
        behind_us: dict[Timestamp, int] = {}
        stamp_for, say_complete = front.machine.stamp_for, front.machine.say_complete

        def stamped(cache: LogCache) -> Timestamp:
            stamp = stamp_for(cache)
            behind_us[stamp] = WALL_US_START + self.now_us - wall_us(stamp)
            self._note("given", behind_us[stamp])
            return stamp

        def complete(name: str, timestamps: tuple[Timestamp, ...]) -> None:
            for each in timestamps:
                self._note("acknowledged", behind_us.get(each, 0))
            say_complete(name, timestamps)

        front.machine.stamp_for, front.machine.say_complete = stamped, complete  # type: ignore[method-assign]

    def _note(self, what: str, behind_us: int) -> None:
        self.most_us[what] = max(self.most_us[what], behind_us)


def test_what_is_stamped_far_behind_is_never_acknowledged() -> None:
    """Whatever is lost, however late its front end reads that it is refused."""
    faults = replace(NO_FAULTS, loss=0.3, tail=0.2, tail_us_max=4_000_000, client_freezes=4)
    for seed in range(1, SEEDS + 1):
        what = with_clocks(seed, ClockSettings(0.0, 0.0), faults)
        world = FarBehind(replace(what, embedded=0, keyed=0.0, deadline_s=12.0, is_exact=False))
        world.run()
        judge(world)
        offset_us = world.document.clock.offset_max_s * 1e6
        assert world.most_us["given"] > offset_us, f"seed {seed} says nothing"
        assert world.most_us["acknowledged"] <= offset_us, f"seed {seed}"


@pytest.mark.parametrize("name", ["register/mine", "register/theirs"])
def test_who_stamps_ahead_makes_nobody_wait_who_writes_to_another_object(name: str) -> None:
    """Somebody stores an entry 1.95 s ahead at one replica, every 0.3 s. A front end that meets it there writes to its own
    object as if nothing were; on the same object it waits."""
    hand = Hand({"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, clock=ClockSettings())
    waits_us = []
    for round_ in range(5):
        hand.sleep(300_000)
        ahead = make(WALL_US_START + hand.now_us + 1_950_000, 0, "attacker")
        append = Append("register/theirs", (Entry(ahead, ahead, Value("0")),), "first")
        hand.replicas["r1"].exchange(Batch(hand.document.hash, (append,)), WALL_US_START + hand.now_us)
        hand.ask(f"f{round_}", Read("register/other"))
        begun_us = hand.now_us
        hand.ask(f"f{round_}", Read(name))
        hand.ask(f"f{round_}", Write(name, Value("1")))
        waits_us.append(hand.now_us - begun_us)
    if name == "register/mine":
        assert max(waits_us) < 10_000, waits_us
    else:
        assert min(waits_us) > 1_000_000, waits_us


def skewed(seed: int) -> Scenario:
    """Producers whose clocks are declared good and are not, on an otherwise quiet cluster."""
    faults = Faults(client_skew_us=SKEW_US)
    what = with_clocks(seed, ClockSettings(0.0, 0.0), faults)
    return replace(
        what, objects=("queue/q",), weights={"Enq": 3, "Deq": 1}, think_us=10_000, keyed=0.0, embedded=0
    )


def order_is_wrong(calls: Sequence[Call]) -> bool:
    try:
        check_object("queue/q", calls, is_exact=True)
    except Violation as violation:
        return "not linearizable (Serial)" in str(violation)
    return False


def overtakings(calls: Sequence[Call]) -> list[tuple[Call, Call]]:
    """Pairs of enqueues, one ended before the other began, whose items were certainly taken the other way round."""
    taken = {
        item: (call, place)
        for call in calls
        for place, item in enumerate(call.results)
        if call.operation == "Deq"
    }
    enqueued = [call for call in calls if call.operation == "Enq" and call.args[0] in taken]
    return [
        (first, second)
        for first in enqueued
        for second in enqueued
        if first.returned < second.invoked and _is_before(taken[second.args[0]], taken[first.args[0]])
    ]


def _is_before(one: tuple[Call, int], other: tuple[Call, int]) -> bool:
    (taking, place), (later, behind) = one, other
    return place < behind if taking is later else taking.returned < later.invoked


def test_without_either_the_order_of_producers_can_be_off_by_the_skew_and_nothing_else() -> None:
    """Every run keeps all but the order; some run breaks it; where it does, only between items of different producers
    that were enqueued within the skew of each other."""
    wrong = []
    for seed in range(1, SEEDS + 1):
        world = World(skewed(seed))
        world.run()
        calls = world.history.calls["queue/q"]
        check_object("queue/q", calls, is_exact=False)
        check_drained("queue/q", calls)
        pairs = overtakings(calls)
        for first, second in pairs:
            assert first.who != second.who, f"seed {seed}: {first} and {second} are of one producer"
            apart_us = second.invoked_us - first.returned_us
            assert apart_us <= 2 * SKEW_US, f"seed {seed}: {apart_us} us between {first} and {second}"
        assert bool(pairs) <= order_is_wrong(calls)
        wrong += [seed] if pairs else []
    assert WRONG_ORDER in wrong, wrong


def test_the_same_producers_with_true_clocks_keep_the_order() -> None:
    for seed in range(1, SEEDS + 1):
        what = replace(skewed(seed), faults=Faults(), is_exact=True)
        run(what)
