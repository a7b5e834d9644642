"""A front end whose machine is suspended, or gone for long: its monotonic clock stands still meanwhile, and others' do not."""

import copy

import pytest

from quorate.adts.log import Value
from quorate.adts.plain_class import PlainClass
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.messages import Accept, Append, Collect
from quorate.client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Invoke,
    PutIfAbsent,
    QueueSize,
    Read,
    Write,
)
from quorate.gc.pruning import Pruning
from quorate.gc.tombstones import Tombstones
from quorate.replica.data_folder.replacement import relevant, union
from quorate.simulation.memory.replica import InMemoryReplica
from quorate.timestamps.clock import Now
from tests.sim.planted.played import QUEUE, Played, _apply
from tests.sim.schedules.hand import EXACT
from tests.support.own_types import Cart

CART = "cart/ann"
KEY = "dictionary/d/k"
REGISTER = "register/r"
CLOCKS = pytest.mark.parametrize("clock", [EXACT, ClockSettings()], ids=["declared", "measured"])
W, X, Y, Z = (Value(f'"{each}"') for each in "wxyz")


@pytest.mark.parametrize("is_dequeued", [True, False])
def test_an_old_entry_of_one_log_is_counted(is_dequeued: bool) -> None:
    """Its front end is gone, and two replicas are fenced above it: a count has its fate decided, however old it is."""
    hand = Played()
    if is_dequeued:
        hand.ask("f0", Enqueue(QUEUE, (Y,)))
        hand.ask("f0", Dequeue(QUEUE))
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f1", "r1")
    hand.vanish("f1")
    hand.at("f3", Enqueue(QUEUE, (Y,)), "r2", "r3")
    hand.fence("r2", "r3")
    hand.grow_old()
    hand.start("f2", QueueSize(QUEUE), "size")
    hand.carry_until("size", "f2", *hand.replicas)
    hand.must_be_known("size")


class Suspended(Played):
    """A world in which the machine of f4 is suspended."""

    def suspend(self, seconds: float) -> None:
        """For so long."""
        self.stand_still("f4", int(seconds * 1e6))

    def know_clocks(self, *fronts: str) -> None:
        """These front ends have measured all clocks."""
        for front in fronts:
            self.start(front, Read(REGISTER), f"{front} knows", is_noted=False)
            self.settle()


def test_an_answer_from_before_a_burial_is_none_for_a_machine_that_was_suspended() -> None:
    hand = Suspended()
    hand.ask("f1", Write(KEY, X))
    hand.carry_commits("f1", *hand.replicas)
    hand.at("f2", Write(KEY, None), "r2", "r3")
    hand.carry_commits("f2", "r2", "r3")
    hand.packets.clear()
    hand.grow_old()
    hand.start("f4", Read(KEY), "asked", is_noted=False)
    arrive = hand.answer_late("f4", "r1")
    begun_us = hand.now_us
    with hand.stopped("f4"):
        hand.ripen(KEY)
        hand.bury(KEY)
        hand.stood_still_us["f4"] = hand.now_us - begun_us
    hand.at("f4", Read(KEY), "r2", "r3")
    arrive()
    hand.at("f4", Read(KEY), "r2", "r3")
    hand.judge()


@pytest.mark.parametrize("put", [PutIfAbsent(KEY, X), Write(KEY, X)])
@pytest.mark.parametrize("since", ["compared in vain", "accepted by one, and ended"])
def test_a_backup_brings_no_forgotten_key_back_though_somebody_has_asked_for_it_since(
    put: PutIfAbsent | Write, since: str
) -> None:
    """A compare-and-set that fails leaves the key known, with promises, and without a value. Or r2 alone has accepted a value, which a failed one under
    a key ended at r3 and the store that is lost."""
    hand = Played()
    hand.ask("f1", put)
    hand.carry_commits("f1", *hand.replicas)
    backup = copy.deepcopy(hand.replicas["r1"].store)
    hand.ask("f2", Write(KEY, None))
    hand.carry_commits("f2", *hand.replicas)
    hand.grow_old()
    hand.ripen(KEY)
    hand.bury(KEY)
    if since == "compared in vain":
        assert hand.ask("f3", CompareAndSet(KEY, Y, X)) is False
        hand.carry_commits("f3", *hand.replicas)
    else:
        hand.start("f3", PutIfAbsent(KEY, Y), "set")
        hand.go_until(Accept, "f3", "r2", "r3")
        hand.reach("f3", "r2")
        hand.vanish("f3")
        hand.at("f5", CompareAndSet(KEY, X, Y, key="k"), "r1", "r3")
        hand.vanish("f5")
    sources = {"r1": backup, "r2": hand.replicas["r2"].store, "r3": hand.replicas["r3"].store}
    made = InMemoryReplica(hand.document, "r1")
    made.store._floor = max(each.floor() for each in sources.values())
    _apply(made.store, KEY, union(KEY, relevant(KEY, sources, hand.document, current=("r2", "r3"))))
    hand.replicas["r1"] = made
    for other in ("r3", "r2"):
        hand.at(f"reads{other}", Read(KEY), "r1", other)
    hand.judge()


class Paused(Suspended):
    """A world in which a virtual machine was paused: both clocks of f4 stood still, and are as far behind when it goes on."""

    def _now(self, front: str = "") -> Now:
        now = super()._now(front)
        return Now(now.mono_s, now.wall_us - self.stood_still_us["f4"]) if front == "f4" else now


@pytest.mark.parametrize("current", [("r2", "r3"), ()], ids=["one is replaced", "all are backups"])
def test_a_backup_brings_no_forgotten_object_of_ones_own_type_back(current: tuple[str, ...]) -> None:
    """The cart was emptied after the backup of r1, and every replica has forgotten it."""
    hand = Played(types={"cart": "tests.support.own_types:Cart"})
    hand.ask("f1", in_cart("add", "a", 1))
    hand.carry_commits("f1", *hand.replicas)
    backup = copy.deepcopy(hand.replicas["r1"].store)
    hand.ask("f2", in_cart("take", "a"))
    hand.carry_commits("f2", *hand.replicas)
    hand.grow_old()
    hand.bury(CART)
    sources = {"r1": backup, "r2": hand.replicas["r2"].store, "r3": hand.replicas["r3"].store}
    held = relevant(CART, sources, hand.document, current=current)
    assert backup not in held
    assert [source.state(CART) for source in held] == [None, None]


def in_cart(operation: str, *args: object) -> Invoke:
    found = PlainClass(Cart)
    return Invoke(CART, found, found.call(operation, *args))


def test_a_paused_machine_hears_of_the_time_from_the_replicas() -> None:
    """Neither of its clocks tells that its entry is older than anything that is remembered; the answers do that show it no more."""
    hand = Paused(clock=ClockSettings())
    hand.know_clocks("f4", "f1", "f2", "f3")
    hand.start("f4", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f4", "r1")
    recovering_while_suspended(hand)
    while "x" not in hand.outcomes:
        hand.move("f4", *hand.replicas)
    hand.judge()


def test_a_paused_machine_brings_no_forgotten_key_back() -> None:
    """As above: the key looks as if nothing had ever been stored."""
    hand = Paused(clock=ClockSettings())
    hand.know_clocks("f4", "f1", "f2", "f3")
    hand.start("f4", Write(KEY, X), "put")
    hand.reach("f4", "r1")
    hand.at("f2", CompareAndSet(KEY, Y, X), *hand.replicas)
    hand.carry_commits("f2", *hand.replicas)
    hand.carry("f4", "r2", "r3")
    hand.drop("f4")
    hand.go_until(Collect, "f4")
    hand.drop("f4")
    hand.at("f1", Read(KEY), *hand.replicas)
    hand.at("f3", Write(KEY, None), *hand.replicas)
    hand.carry_commits("f3", *hand.replicas)
    begun_us = hand.now_us
    with hand.stopped("f4"):
        hand.grow_old()
        hand.ripen(KEY)
        hand.bury(KEY)
        hand.stood_still_us["f4"] = hand.now_us - begun_us
    while "put" not in hand.outcomes:
        hand.move("f4", *hand.replicas)
    hand.at("f1", Read(KEY), *hand.replicas)
    hand.judge()


def recovering_while_suspended(hand: Suspended) -> None:
    """Enq(x) of f4 has reached r1 alone, x is taken, and the others refuse Enq(x). f4 asks what became of it, and is suspended until that is
    forgotten; then it goes on."""
    hand.at("f2", Dequeue(QUEUE), *hand.replicas)
    hand.carry_commits("f2", *hand.replicas)
    hand.carry("f4", "r2", "r3")
    hand.drop("f4")
    hand.go_until(Collect, "f4")
    hand.drop("f4")
    with hand.stopped("f4"):
        hand.suspend(hand.document.memory_s + 1)
        hand.ask("f1", Enqueue(QUEUE, (Z,)))
        hand.ask("f3", Dequeue(QUEUE))
        hand.carry_commits("f3", *hand.replicas)


@CLOCKS
def test_one_fresh_answer_does_not_tell_how_long_a_machine_was_suspended(clock: ClockSettings) -> None:
    """What is old goes by what was measured before, until most replicas have answered anew. Where one replica is enough to read, its answer came
    first: x counted as void, was stored anew, and taken twice."""
    hand = Suspended({"Enq/Ok": (0, 3), "Deq/Ok": (1, 3)}, clock=clock)
    hand.know_clocks("f4", "f1", "f2", "f3")
    hand.start("f4", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f4", "r1")
    hand.at("f3", Enqueue(QUEUE, (Y,)), *hand.replicas)
    hand.fence("r2")
    recovering_while_suspended(hand)
    while "x" not in hand.outcomes:
        has_other = any(not isinstance(packet.send.request, Collect) for packet in hand.of("f4"))
        hand.move("f4", *(hand.replicas if has_other else ("r3",)))
    hand.judge()


def test_a_suspended_machine_does_nothing_anew_where_clocks_had_been_ahead() -> None:
    """Stamps of this queue are an hour ahead, so that none looks old; no clock steps while anything is under way."""
    hand = Suspended()
    hand.wall_errors_us = dict.fromkeys([*hand.replicas, "f0", "f1", "f2", "f3", "f4"], 3_600_000_000)
    hand.ask("f0", Enqueue(QUEUE, (Y,)))
    hand.ask("f0", Dequeue(QUEUE))
    hand.carry_commits("f0", *hand.replicas)
    hand.wall_errors_us = {}
    hand.sleep(60_000_000)
    hand.know_clocks("f4", "f2")
    hand.start("f4", Enqueue(QUEUE, (X,)), "x")
    hand.go_until(Append, "f4", *hand.replicas)
    hand.packets = [packet for packet in hand.packets if isinstance(packet.send.request, Append)]
    hand.reach("f4", "r1")
    recovering_while_suspended(hand)
    while "x" not in hand.outcomes:
        hand.move("f4", *hand.replicas)
    hand.judge()


def test_what_goes_on_alone_began_with_the_round_that_it_was_in() -> None:
    """As above, and x is enqueued together with another item, by a round that ends once the machine wakes: each then had a deadline anew."""
    hand = Suspended()
    hand.wall_errors_us = dict.fromkeys([*hand.replicas, "f0", "f1", "f2", "f3", "f4"], 3_600_000_000)
    hand.ask("f0", Enqueue(QUEUE, (Y,)))
    hand.ask("f0", Dequeue(QUEUE))
    hand.carry_commits("f0", *hand.replicas)
    hand.wall_errors_us = {}
    hand.sleep(60_000_000)
    hand.know_clocks("f4", "f2")
    hand.start_together("f4", {"x": Enqueue(QUEUE, (X,), "k1"), "w": Enqueue(QUEUE, (W,), "k2")})
    hand.go_until(Append, "f4", *hand.replicas)
    hand.packets = [packet for packet in hand.packets if isinstance(packet.send.request, Append)]
    hand.reach("f4", "r1")
    hand.at("f2", Dequeue(QUEUE, 2), *hand.replicas)
    hand.carry_commits("f2", *hand.replicas)
    hand.carry("f4", "r2")
    hand.drop("f4")
    with hand.stopped("f4"):
        hand.suspend(hand.document.memory_s + 1)
        hand.ask("f1", Enqueue(QUEUE, (Z,)))
        hand.ask("f3", Dequeue(QUEUE))
        hand.carry_commits("f3", *hand.replicas)
    while not {"x", "w"} <= hand.outcomes.keys():
        hand.move("f4", *hand.replicas)
    hand.judge()


@CLOCKS
def test_a_keyed_enqueue_that_is_repeated_by_a_suspended_machine(clock: ClockSettings) -> None:
    """The repeat begins within the retry window. When its first message goes out, nobody remembers the key, and the entry is younger than that."""
    hand = Suspended(clock=clock)
    hand.know_clocks("f4")
    hand.start("f0", Enqueue(QUEUE, (X,), "k"), "x")
    while hand.of("f0"):
        hand.arrive("f0")
    assert hand.ask("f2", Dequeue(QUEUE)) == (X,)
    hand.carry_commits("f2", *hand.replicas)
    hand.sleep(29_000_000)
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "again")
    hand.drop("f4")
    with hand.stopped("f4"):
        hand.suspend(hand.document.memory_s - 28.0)
        for replica in hand.replicas.values():
            window_s = hand.document.memory_s
            pruning = Pruning(Tombstones(), lag_s=hand.document.limits.payloads_s, window_s=window_s)
            now = hand._now()
            for each in (now.before(window_s + 2), now, now, now):
                pruning.round(replica.store, each)
            replica.store.commit()
            assert replica.store.reservations() == 0
    hand.settle()
    assert not isinstance(hand.outcomes["again"], Done)
    assert hand.ask("f2", Dequeue(QUEUE, 5)) == ()


@CLOCKS
def test_a_keyed_dequeue_that_is_repeated_by_a_suspended_machine(clock: ClockSettings) -> None:
    hand = Suspended(clock=clock)
    hand.know_clocks("f4")
    for item in (X, Y, Z):
        hand.ask("f2", Enqueue(QUEUE, (item,)))
    hand.carry_commits("f2", *hand.replicas)
    assert hand.ask("f0", Dequeue(QUEUE, key="k")) == (X,)
    hand.carry_commits("f0", *hand.replicas)
    hand.sleep(29_000_000)
    hand.start("f4", Dequeue(QUEUE, key="k"), "again")
    hand.drop("f4")
    with hand.stopped("f4"):
        hand.suspend(hand.document.memory_s - 25)
        assert hand.ask("f3", Dequeue(QUEUE, key="another")) == (
            Y,
        )  # The key is forgotten as this is decided.
        hand.carry_commits("f3", *hand.replicas)
    hand.settle()
    assert not isinstance(hand.outcomes["again"], Done)
    assert hand.ask("f2", Dequeue(QUEUE, 5)) == (Z,)


def test_what_is_late_is_not_decided_together_with_newer_ones_where_clocks_step_back() -> None:
    """As `recovery_that_a_newer_operation_carries_along` of the planted mistakes; then all clocks step back by as long as f1 was stopped."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f1", "r1")
    hand.at("f2", Dequeue(QUEUE), *hand.replicas)
    hand.carry_commits("f2", *hand.replicas)
    hand.carry("f1", "r2", "r3")
    hand.drop("f1")
    hand.go_until(Collect, "f1")
    hand.start("f9", Dequeue(QUEUE), "other", is_noted=False)
    hand.reach("f9", "r2", "r3")
    hand.vanish("f9")
    hand.carry("f1", "r2")
    hand.grow_old()
    back_us = 2_000_000 - int((hand.document.memory_s + 1) * 1e6)
    hand.wall_errors_us = dict.fromkeys((*hand.replicas, "f1", "f3", "f4", "end"), back_us)
    hand.at("f3", Enqueue(QUEUE, (Y,)), "r1", "r3")
    hand.at("f4", Dequeue(QUEUE), "r1", "r3")
    hand.carry_commits("f4", "r1", "r3")
    hand.start("f1", Dequeue(QUEUE), "new")
    hand.carry("f1", "r3")
    for replica in ("r1", "r3") * 6:
        if any(packet.send.replica == replica for packet in hand.of("f1")):
            hand.carry("f1", replica)
    hand.settle()
    hand.judge()
