"""Schedules by hand: the narrow races that DESIGN section 6 tells of, each told first and then played."""

from collections.abc import Callable, Generator
from typing import Any, cast

import pytest

from quorate.adts.log import Value
from quorate.adts.specification import Kind
from quorate.adts.types import queue
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.messages import Accept, Collect
from quorate.client_sdk.protocol import front_end as machine
from quorate.client_sdk.protocol.core.rounds import Event, Gathering, Task
from quorate.client_sdk.protocol.core.values import (
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Operation,
    Outcome,
    Peek,
    Read,
    Write,
)
from quorate.client_sdk.protocol.decisions.proposer import Proposer
from quorate.client_sdk.protocol.operations import runs
from quorate.client_sdk.protocol.operations.blind import Blind
from quorate.client_sdk.protocol.operations.context import Machine, OutcomeSteps
from quorate.simulation.history import Call, History
from quorate.simulation.judging.linearizability import Serial, linearization, settled
from tests.sim.schedules.hand import Hand

MAJORITIES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
X, Y, Z = (Value(f'"{item}"') for item in "xyz")
QUEUE = "queue/q"


def enqueue(value: Value) -> Enqueue:
    return Enqueue(QUEUE, (value,))


def test_peek_is_not_contradicted_by_the_recovery_of_an_older_entry() -> None:
    """Enq(x) reaches r1 only. Enq(y), later, reaches r2 and r3. A Peek at r2 and r3 answers y. Now Enq(x) reaches r2 and
    r3, is fenced there, and recovers. Whatever becomes of x: it must not come out before y, which was the front.
    """
    hand = Hand(MAJORITIES)
    hand.start("f1", enqueue(X), "x")
    hand.carry("f1", "r1")
    hand.start("f2", enqueue(Y), "y")
    hand.carry("f2", "r2", "r3")
    assert hand.result("y") is None
    hand.start("f3", Peek(QUEUE), "peek")
    hand.carry_until("peek", "f3", "r2", "r3")
    assert hand.result("peek") == (Y,)
    hand.packets = [packet for packet in hand.packets if packet.front == "f1"]
    hand.settle()
    assert hand.result("x") is None
    assert hand.ask("f4", Peek(QUEUE)) == (Y,)
    assert hand.ask("f4", Dequeue(QUEUE, 9)) + hand.ask("f4", Dequeue(QUEUE, 9)) == (Y, X)
    assert hand.ask("f4", Dequeue(QUEUE, 9)) == ()


def test_empty_is_not_answered_when_the_queue_never_was() -> None:
    """x is at r1 and r2. A Deq by f3 has promises of r1 and r2. A Deq by f1, with a higher ballot, reads the empty log of
    r3. Then y is stored at r1 and r3, and f3's Deq takes x, decided at r1 and r2. Now f1 reads r2: its summary says x
    is gone, its log has no y, and neither had r3's. But there was an item at every moment.
    """
    hand = Hand(MAJORITIES)
    hand.start("f0", enqueue(X), "x")
    hand.carry("f0", "r1", "r2")
    hand.packets.clear()
    hand.start("f3", Dequeue(QUEUE), "takes x")
    hand.carry("f3", "r1", "r2")
    hand.start("f1", Dequeue(QUEUE), "empty?")
    hand.carry("f1", "r3")
    hand.start("f2", enqueue(Y), "y")
    hand.carry("f2", "r1", "r3")
    hand.carry("f3", "r1", "r2")
    assert hand.result("takes x") == (X,)
    hand.carry("f1", "r2")
    hand.packets = [packet for packet in hand.packets if packet.front == "f1"]
    hand.settle()
    assert hand.result("empty?") == (Y,)


class Recorded(Hand):
    """A hand-made world whose queue has a history that can be judged."""

    def __init__(self) -> None:
        super().__init__(MAJORITIES)
        self.history = History()
        self._open: dict[str, tuple[Operation, list[Call]]] = {}

    def start(self, front: str, operation: Operation, name: str) -> None:
        self._open[name] = operation, self.history.invoke(operation, name)
        super().start(front, operation, name)

    def ended(self, name: str, outcome: Outcome) -> None:
        self.history.finish(*self._open.pop(name), outcome)

    def has_order(self) -> bool:
        """Whether a serial queue could have given these answers."""
        calls = settled(self.history.calls[QUEUE])
        return linearization(Serial("queue", calls), calls) is not None


def plain_peek(fence_next: int) -> Callable[[Peek, Task, Machine], OutcomeSteps]:
    """Peek as DESIGN section 2 lists it: read an initial quorum, write back what is not complete, answer. It may even
    fence what it reads up to the front (`fence_next` 1); what it lacks is a decision about what lies below."""

    def run(operation: Peek, task: Task, machine: Machine) -> Generator[float, Event, Outcome]:
        name = operation.object
        cache, choice = machine.cache_of(name), machine.choice_of(name)

        def request(replica: str) -> Collect:
            return Collect(name, window=cache.window(replica, 9, payload=True), fence_next=fence_next)

        looks = Gathering(task, request, choice.votes)
        yield from looks.wait(lambda: choice.initial_of("Peek").is_met_by(looks.replies))
        (front, *_) = queue.view(cache.summary, cache.by_id())
        if not cache.is_complete(front, choice.final_of_kind(Kind.BLIND)):
            yield from Blind(name, task, machine).write_back(front.entry)
        return Done((front.entry.value,), "Peek/Ok", frozenset(looks.replies))

    return run


def peek_while_an_older_entry_travels() -> Recorded:
    """Enq(x) reaches r1 only. Enq(y), later, reaches r2 and r3. A Peek at r2 and r3 answers y. Now the rest of Enq(x)
    arrives; where it is fenced it is recovered. Then all is dequeued."""
    hand = Recorded()
    hand.start("f1", enqueue(X), "x")
    hand.carry("f1", "r1")
    hand.start("f2", enqueue(Y), "y")
    hand.carry("f2", "r2", "r3")
    hand.start("f3", Peek(QUEUE), "peek")
    hand.carry_until("peek", "f3", "r2", "r3")
    assert hand.result("peek") == (Y,)
    hand.packets = [packet for packet in hand.packets if packet.front == "f1"]
    hand.settle()
    assert hand.result("x") is None
    hand.ask("f4", Dequeue(QUEUE))
    hand.ask("f4", Dequeue(QUEUE))
    return hand


@pytest.mark.parametrize("fence_next", [0, 1], ids=["reads only", "fences what it reads"])
def test_a_peek_that_only_observes_breaks_the_order(fence_next: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the shipped Peek settles the front by a decision. With fences x is stored at r1 and refused at r2 and r3: its
    recovery adopts it, for no horizon has passed it, and it comes out before y, which had been the front."""
    monkeypatch.setitem(cast(dict[Any, Any], runs._RUNS), Peek, plain_peek(fence_next))
    hand = peek_while_an_older_entry_travels()
    assert [call.results for call in hand.history.calls[QUEUE] if call.operation == "Deq"] == [(X,), (Y,)]
    assert not hand.has_order()


def test_a_peek_that_settles_the_front_keeps_the_order() -> None:
    """The same schedule, as shipped."""
    hand = peek_while_an_older_entry_travels()
    assert [call.results for call in hand.history.calls[QUEUE] if call.operation == "Deq"] == [(Y,), (X,)]
    assert hand.has_order()


def decision_at_one_replica() -> Recorded:
    """x, y and z wait at all replicas. f1's Deq has promises of r1 and r2 and proposes to take x, which r1 alone accepts.
    f1's other messages stay on their way."""
    hand = Recorded()
    for item in (X, Y, Z):
        hand.ask("f0", enqueue(item))
    hand.lazies.clear()
    hand.start("f1", Dequeue(QUEUE), "f1")
    hand.carry("f1", "r1", "r2")
    hand.carry("f1", "r1")
    assert "f1" not in hand.outcomes
    return hand


def dequeue_at(hand: Hand, front: str, *replicas: str) -> Any:
    """The result of a Deq that reaches only these replicas."""
    hand.start(front, Dequeue(QUEUE), front)
    hand.carry_until(front, front, *replicas)
    hand.packets = [packet for packet in hand.packets if packet.front != front]
    return hand.result(front)


def test_a_decision_at_one_replica_that_others_build_on_is_in_force() -> None:
    """f2 reads r1: its summary rests on f1's. f3 goes on at r2 and r3. Two decisions later f1 learns that it has x."""
    hand = decision_at_one_replica()
    assert dequeue_at(hand, "f2", "r1", "r3") == (Y,)
    assert dequeue_at(hand, "f3", "r2", "r3") == (Z,)
    hand.settle()
    assert hand.result("f1") == (X,)
    assert hand.ask("f4", Dequeue(QUEUE)) == ()
    assert hand.has_order()


def test_a_decision_at_one_replica_that_others_pass_by_never_was() -> None:
    """f2 and f3 read r2 and r3, which know nothing of f1's summary: x and y are theirs. r1 then drops the summary of f1
    for theirs, and f1, which was told that r1 accepted, must not answer x."""
    hand = decision_at_one_replica()
    assert dequeue_at(hand, "f2", "r2", "r3") == (X,)
    assert dequeue_at(hand, "f3", "r2", "r3") == (Y,)
    hand.settle()
    assert hand.result("f1") == (Z,)
    assert hand.ask("f4", Dequeue(QUEUE)) == ()
    assert hand.has_order()


def test_accept_that_seemed_out_is_revived_and_its_caller_hears_of_it() -> None:
    """x, y, z wait. f1's accept A (takes x) reaches r3 only; f2, promised by r1 and r2, has its accept B (takes x too)
    at r2 only. f1 turns to r1 and r2 and sees B, without A. f3, at r1 and r3, sees A and goes on from it: A is in force
    after all. f1 must give x to its caller, and not a second item.
    """
    hand = Hand(MAJORITIES)
    for value in (X, Y, Z):
        hand.ask("f0", enqueue(value))
    hand.packets.clear()
    hand.start("f1", Dequeue(QUEUE), "one")
    hand.carry("f1", "r1", "r2")
    hand.packets = [packet for packet in hand.packets if isinstance(packet.send.request, Accept)]
    hand.carry("f1", "r3")
    hand.start("f2", Dequeue(QUEUE), "two")
    hand.carry("f2", "r1", "r2")
    hand.carry("f2", "r2")
    hand.carry("f1", "r1")
    hand.drop("f1")
    hand.wake("f1")
    hand.carry("f1", "r1", "r2")
    hand.start("f3", Dequeue(QUEUE), "three")
    hand.carry("f3", "r1", "r3")
    hand.carry_until("three", "f3", "r1", "r3")
    hand.settle()
    rest = hand.ask("f4", Dequeue(QUEUE, 9))
    given = [*hand.result("one"), *hand.result("two"), *hand.result("three"), *rest]
    assert sorted(given) == [X, Y, Z]


def test_an_operation_keeps_what_it_learns_though_many_others_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A front end forgets the object idle longest; not while an operation on it waits for its answers."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", Write("register/r", X))
    monkeypatch.setattr(machine, "OBJECTS_MAX", 2)
    hand.start("f2", Read("register/r"), "read")
    for number in range(5):
        hand.start("f2", Read(f"register/{number}"), f"other {number}")
    hand.settle()
    assert hand.result("read") == X


@pytest.mark.parametrize("order", ["enqueue first", "dequeue first"])
def test_one_key_for_two_kinds_of_operation(order: str) -> None:
    """A key names one operation: an enqueue and a dequeue that share it are two."""
    hand = Hand(MAJORITIES)
    if order == "enqueue first":
        hand.ask("f1", Enqueue(QUEUE, (X,), "k"))
        got = hand.ask("f1", Dequeue(QUEUE, 1, key="k"))
        assert got == (X,)
        assert hand.ask("f2", Dequeue(QUEUE, 1)) == ()
    else:
        hand.ask("f1", Enqueue(QUEUE, (X,)))
        assert hand.ask("f1", Dequeue(QUEUE, 1, key="k")) == (X,)
        hand.ask("f1", Enqueue(QUEUE, (Y,), "k"))
        assert hand.ask("f2", Dequeue(QUEUE, 1)) == (Y,)


def test_a_key_used_again_with_another_item_is_refused() -> None:
    """Else both items would have one timestamp, at different replicas, and the one or the other would come out."""
    hand = Hand(MAJORITIES)
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "x")
    hand.carry_until("x", "f1", "r1", "r2")
    hand.packets.clear()
    hand.start("f2", Enqueue(QUEUE, (Y,), "k"), "y")
    hand.settle()
    outcome = hand.outcomes["y"]
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.definite) == ("key-reused", True)
    assert hand.ask("f1", Enqueue(QUEUE, (X,), "k")) is None
    assert hand.ask("f3", Dequeue(QUEUE, 9)) == (X,)


def test_a_payload_that_only_a_dead_replica_has_does_not_hold_the_queue_up() -> None:
    """Enq(x) reaches r3 only, and its front end vanishes. f2 learns of x from r3, without the payload. Then r3 dies."""
    hand = Hand(MAJORITIES)
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.carry("f1", "r3")
    hand.packets.clear()
    hand.start("f1", Enqueue(QUEUE, (Y,)), "y")
    hand.carry("f1", "r1", "r2")
    assert hand.result("y") is None
    hand.packets.clear()
    hand.start("f2", Dequeue(QUEUE), "first")
    hand.carry("f2", "r3", "r2")
    for _ in range(400):
        if "first" in hand.outcomes:
            break
        hand.packets = [p for p in hand.packets if p.front == "f2" and p.send.replica != "r3"]
        if hand.packets:
            hand.carry("f2", hand.packets[0].send.replica)
        else:
            hand.sleep()
    assert hand.result("first") == (Y,)


def test_an_entry_that_is_sent_again_for_long_is_not_taken_for_one_of_a_wrong_clock() -> None:
    """No replica can be reached for longer than the accepted clock offset; then they can. The entry is old by then, and
    its front end's clock is right. (Found with a replica whose disk was full for a while.)"""
    hand = Hand(MAJORITIES)
    hand.start("a", enqueue(X), "enqueue")
    for _ in range(10):
        hand.drop("a")
        hand.wake("a")
    hand.sleep(us=int(hand.document.clock.offset_max_s * 1e6))
    hand.carry_until("enqueue", "a", "r1", "r2")
    hand.result("enqueue")


def test_what_is_stamped_after_slow_answers_waits_until_clocks_that_are_right_take_it() -> None:
    """The first answers took 2.05 s: a front end whose clock has no declared error holds that the replicas' clocks may be ahead by so much, which is more
    than they accept (`offset_max_s`), and less than what it sets its own clock back for. No clock is wrong."""
    hand = Hand(MAJORITIES, clock=ClockSettings())
    hand.start("a", enqueue(X), "slow")
    hand.sleep(us=int(hand.document.clock.offset_max_s * 1e6) + 50_000)
    hand.carry_until("slow", "a", "r1", "r2", "r3")
    hand.ask("a", enqueue(Y))
    assert [hand.ask("b", Dequeue(QUEUE)) for _ in range(2)] == [(X,), (Y,)]


@pytest.mark.parametrize("moment", ["_plan", "_next_collect"], ids=["before the accept", "while it is made"])
def test_front_end_that_met_an_error_goes_on_as_after_a_crash(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of a proposer raises. Its front end starts over: it takes a new term, and x comes out once."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", enqueue(X))
    hand.start("f1", Dequeue(QUEUE), "broken")
    with monkeypatch.context() as patch:
        patch.setattr(Proposer, moment, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            hand.settle()
    before = {name: replica.store.state(QUEUE) for name, replica in hand.replicas.items()}
    terms = [state.promised for state in before.values() if state is not None]
    assert terms, "the broken one had a term"
    hand._fronts["f1"].start_over()
    hand.packets.clear()
    hand.outcomes["broken"] = Failed("unknown", "as the driver says", definite=False)
    assert hand.ask("f1", Dequeue(QUEUE)) == (X,)
    after = [replica.store.state(QUEUE) for replica in hand.replicas.values()]
    assert min(state.promised for state in after if state is not None) > max(terms)
    assert hand.ask("f2", Dequeue(QUEUE)) == ()
