"""A call that is given up in a round with others, for nobody stores it: the round, which goes on for those, must not have it stored."""

import json

import pytest

from quorate.adts.log import Value
from quorate.adts.plain_class import PlainClass
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.limits import Limits
from quorate.client_sdk.protocol.core.values import Done, Failed, Invoke, Outcome, Write
from quorate.client_sdk.protocol.operations import own_calls
from tests.sim.schedules.hand import STEPS_MAX, Hand
from tests.support.own_types import Basket

CART = PlainClass(Basket)
FEW = Limits(value_bytes_max=6000)
"""1,000 bytes of calls that wait at each replica: a handful."""
WRITES_AT_ALL = ChoiceRule("register/*", {"Read/Ok": (1, 0), "Write/Ok": (0, 3)})
Quorums = dict[str, tuple[int, int]]


def call(operation: str, *arguments: str) -> Invoke:
    return Invoke("cart/ann", CART, CART.call(operation, *arguments))


def added(number: object) -> str:
    return f"{number}" + "x" * 100


def filled_at_two(quorums: Quorums) -> Hand:
    """r1 and r2 have no room for another call, r3 knows of none, and f0 of nothing."""
    hand = Hand(
        {}, types={"cart": "shop:Cart"}, limits=FEW, rules=(WRITES_AT_ALL, ChoiceRule("cart/*", quorums))
    )
    for front in ("f0", "f1"):
        hand.ask(front, call("content"))
    for number in range(4):
        hand.start("f1", call("add", added(number)), f"fill {number}")
        hand.carry("f1", "r1", "r2")
        if f"fill {number}" not in hand.outcomes:
            hand.cancel("f1", f"fill {number}")
        hand.drop("f1")
    return hand


def ended_while_r3_is_down(hand: Hand, front: str, name: str) -> Outcome:
    """How the operation ends while no connection to r3 can be made."""
    for _ in range(STEPS_MAX):
        if name in hand.outcomes:
            return hand.outcomes[name]
        hand.fail(front, "r3", definite=True)
        if ready := [packet.send.replica for packet in hand.packets if packet.front == front]:
            hand.carry(front, ready[0])
        else:
            hand.sleep()
    raise AssertionError(f"{name} has no outcome")


@pytest.mark.parametrize(
    ("quorums", "end", "times"),
    [
        ({"Blind/Ok": (0, 1), "Call/Ok": (3, 1)}, Failed, 0),
        ({"Blind/Ok": (0, 2), "Call/Ok": (2, 2)}, Done, 1),
    ],
    ids=["refused", "begun anew"],
)
def test_a_call_that_is_given_up_is_not_stored_by_a_replica_that_comes_back(
    quorums: Quorums, end: type[Outcome], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there though its caller had been told for certain that there was no room, or a second time. The write goes on until r3 has it."""
    monkeypatch.setattr(own_calls, "is_to_run_log", lambda *_: False)
    hand = filled_at_two(quorums)
    hand.start_all("f0", {"add": call("add", added("last")), "write": Write("register/y", Value("1"))})
    outcome = ended_while_r3_is_down(hand, "f0", "add")
    assert isinstance(outcome, end)
    if isinstance(outcome, Failed):
        assert (outcome.reason, outcome.definite) == ("log-full", True)
    assert "write" not in hand.outcomes
    hand.settle()
    assert isinstance(hand.outcomes["write"], Done)
    shown = json.loads(str(hand.ask("f2", call("content")).results[0]))
    assert (shown.get(added("last"), 0), shown[added(3)]) == (times, 1)
