"""A type of one's own, as quorums see it."""

from quorate.adts.specification import Invocation, Response
from quorate.adts.types.called import CALL, Called
from quorate.quorums.choices.choice import QuorumChoice
from quorate.quorums.choices.choices import constraints_of, minimal_choices


def test_any_call_depends_on_any() -> None:
    called = Called("cart")
    votes = {"r1": 1, "r2": 1, "r3": 1}
    choices = minimal_choices(constraints_of(called), votes, "inclusion")
    assert sorted(tuple(each.classes["Call/Ok"]) for each in choices) == [(1, 3), (2, 2), (3, 1)]
    assert QuorumChoice(called, votes).sizes("Call/Ok") == (2, 2)


def test_its_state_is_known_to_its_code_alone() -> None:
    called = Called("cart")
    state, response = called.step(called.initial(), Invocation(CALL))
    assert (called.name, state, response) == ("cart", 1, Response("Ok"))
