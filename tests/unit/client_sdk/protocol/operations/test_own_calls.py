"""Calls on objects of one's own types: which are answered from a look, and which are decided."""

from typing import Any

from quorate.adts.plain_class import Json, PlainClass
from quorate.adts.specification import Response
from quorate.api_specs.messages import Accept, Collect
from quorate.client_sdk.protocol.core.values import Done, Failed, Invoke
from quorate.client_sdk.protocol.operations.own_calls import LOOK_BYTES_MAX
from tests.sim.schedules.hand import Hand
from tests.support.own_types import Cart

CART = PlainClass(Cart)
OBJECT = "cart/ann"
ALL = ("r1", "r2", "r3")


def call(operation: str, *args: Any, key: str = "") -> Invoke:
    return Invoke(OBJECT, CART, CART.call(operation, *args), key)


def cluster() -> Hand:
    return Hand({"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, types={"cart": "shop:Cart"})


def asked(hand: Hand, front: str, operation: Invoke) -> str:
    """What the front end asks at first: "look", or "promise" for a decision."""
    hand.start(front, operation, f"asked at {hand.now_us}")
    (request, *_) = [packet.send.request for packet in hand.packets if packet.front == front]
    assert isinstance(request, Collect)
    hand.settle()
    return "look" if request.ballot is None else "promise"


def answer(**items: int) -> Response:
    return Response("Ok", (Json("{" + ",".join(f'"{item}":{n}' for item, n in items.items()) + "}"),))


def test_what_changes_nothing_is_answered_from_a_look_and_what_does_is_decided_from_then_on() -> None:
    hand = cluster()
    assert asked(hand, "f1", call("content")) == "look"
    assert hand.ask("f1", call("content")) == answer()
    assert all(not replica.store.states(0, 9) for replica in hand.replicas.values()), "a look makes no object"
    assert asked(hand, "f1", call("add", "a")) == "look", "nobody knows yet that it changes something"
    assert asked(hand, "f1", call("add", "b")) == "promise"
    assert asked(hand, "f1", call("content")) == "look"
    assert hand.ask("f2", call("content")) == answer(a=1, b=1)


def test_a_call_under_a_key_is_decided_since_it_may_be_a_repeat() -> None:
    hand = cluster()
    assert hand.ask("f1", call("add", "a", key="k")) == Response("Ok")
    assert asked(hand, "f2", call("add", "a", key="k")) == "promise"
    assert hand.ask("f2", call("content")) == answer(a=1)


def test_looks_at_large_states_and_with_large_arguments_are_decided() -> None:
    """A look is run where its answer comes in, of many callers in one turn of the event loop."""
    hand = cluster()
    hand.ask("f1", call("fill", LOOK_BYTES_MAX))
    assert asked(hand, "f1", call("content")) == "promise"
    fresh = cluster()
    assert asked(fresh, "f1", call("keep", "x" * (LOOK_BYTES_MAX + 1))) == "promise"
    assert asked(fresh, "f1", call("keep", ["x" * LOOK_BYTES_MAX])) == "promise"
    assert asked(fresh, "f1", call("keep", "x")) == "look"


def test_what_is_not_decided_is_decided_before_a_look_is_answered() -> None:
    hand = cluster()
    hand.ask("f1", call("add", "a"))
    hand.start("f1", call("add", "b"), "lost")
    hand.carry("f1", "r1", "r2")
    assert any(isinstance(packet.send.request, Accept) for packet in hand.packets)
    hand.carry("f1", "r1")
    hand.cancel("f1", "lost")
    hand.drop("f1")  # Nobody else hears of it.
    hand.start("f2", call("content"), "seen")
    hand.carry("f2", "r1", "r2")
    assert "seen" not in hand.outcomes, "one replica alone holds what it saw"
    hand.settle()
    seen = hand.outcomes["seen"]
    assert isinstance(seen, Done)
    assert hand.ask("f3", call("content")) == seen.result
    assert asked(hand, "f2", call("content")) == "look", "that look changed nothing of its own"


def test_code_that_fails_is_told_and_changes_nothing() -> None:
    hand = cluster()
    hand.start("f1", call("slip"), "slipped")
    hand.settle()
    failed = hand.outcomes["slipped"]
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.definite) == ("refused", True)
    assert hand.ask("f1", call("content")) == answer()
