"""An enqueue under a key, whose entry one replica holds below a decided horizon, is repeated after another replica was replaced."""

from quorate.adts.log import Value
from quorate.api_specs.messages import Append
from quorate.client_sdk.protocol.core.values import Dequeue, Enqueue
from quorate.replica.data_folder.replacement import agreed
from quorate.replica.protocol.log import PutReservation
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

    held = {
        key: [each.store._held[key][1] for name, each in hand.replicas.items() if name != "r3"]
        for key in hand.replicas["r1"].store._held
    }
    hand.replace("r3")
    for (name, key), some in held.items():
        hand.replicas["r3"].store.apply(PutReservation(name, key, agreed(some)))
    hand.replicas["r3"].store.commit()

    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    print(hand.outcomes["x"])
    hand.judge()
