"""An enqueue under a key, whose entry one replica holds below a decided horizon, is repeated after another replica was replaced."""

from quorate.adts.log import Value
from quorate.api_specs.messages import Append
from quorate.client_sdk.protocol.core.values import Dequeue, Enqueue, QueueSize
from tests.sim.planted.played import QUEUE, Played

X, Y = Value('"x"'), Value('"y"')


def test_a_replaced_replica_does_not_answer_that_it_stored_what_its_store_had_refused() -> None:
    """Enq(x) under a key has reached r1 only, when its caller vanishes. y, later, is stored at r2 and r3, and taken there: both are fenced above x, and
    the horizon has passed it. r3's disk is lost, and a store takes its place that is made from the others': it has x from r1. Then the key is
    repeated, and all is dequeued."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.reach("f1", "r1")
    hand.vanish("f1")
    hand.at("f2", Enqueue(QUEUE, (Y,)), "r2", "r3")
    hand.at("f3", Dequeue(QUEUE), "r2", "r3")
    hand.lazies.clear()

    hand.replace("r3")
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    hand.judge()


def test_a_replaced_replica_holds_nothing_under_a_key_where_nothing_was_agreed() -> None:
    """Enq(x) under a key has reached r1 only: it certainly did nothing. y is enqueued. r3's new store is made from the others': what r1 alone held must
    not be what a repeat goes on from, for then x would come out before y."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "first")
    hand.reach("f1", "r1")
    while "first" not in hand.outcomes:
        while hand.packets:
            hand.fail("f1", definite=True)
        hand.sleep()
    hand.ask("f2", Enqueue(QUEUE, (Y,)))
    hand.replace("r3")
    hand.ask("f4", Enqueue(QUEUE, (X,), "k"))
    hand.judge()


def test_what_was_complete_at_the_lost_replica_and_was_taken_is_not_stored_anew() -> None:
    """x, under a key, is stored at r1 and r2, as its taker knows, and is taken at r1 and r3. r1's store is replaced, and the key repeated."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.reach("f1", "r1", "r2")
    hand.vanish("f1")
    hand.at("f3", QueueSize(QUEUE), "r1", "r2")
    hand.at("f3", Dequeue(QUEUE), "r1", "r3")
    hand.lazies.clear()
    hand.replace("r1")
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    hand.judge()
