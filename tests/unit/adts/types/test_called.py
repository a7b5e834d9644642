"""A type of one's own, as quorums see it."""

import pytest

from quorate.adts.specification import Invocation, Response
from quorate.adts.types.called import CALL, Called
from quorate.quorums.choices.choice import BadChoice, QuorumChoice
from quorate.quorums.choices.choices import constraints_of, minimal_choices

VOTES = {"r1": 1, "r2": 1, "r3": 1}


def test_any_call_depends_on_any_and_blind_ones_on_none() -> None:
    choices = minimal_choices(constraints_of(Called("cart")), VOTES, "inclusion")
    found = [(each.classes["Call/Ok"], each.classes["Blind/Ok"]) for each in choices]
    assert sorted((tuple(call), tuple(blind)) for call, blind in found) == [
        ((1, 3), (0, 3)),
        ((2, 2), (0, 2)),
        ((3, 1), (0, 1)),
    ]
    assert QuorumChoice(Called("cart"), VOTES).sizes("Call/Ok") == (2, 2)
    assert QuorumChoice(Called("cart"), VOTES).sizes("Blind/Ok") == (0, 2)


def test_a_rule_for_calls_alone_has_blind_ones_write_what_calls_must_read() -> None:
    """Such rules are older than blind operations of types of one's own."""
    assert QuorumChoice(Called("cart"), VOTES, {"Call/Ok": (1, 3)}).sizes("Blind/Ok") == (0, 3)
    assert QuorumChoice(Called("cart"), VOTES, {"Call/Ok": (3, 1)}).sizes("Blind/Ok") == (0, 2)
    with pytest.raises(BadChoice, match="Call/Ok does not meet Blind/Ok"):
        QuorumChoice(Called("cart"), VOTES, {"Call/Ok": (1, 3), "Blind/Ok": (0, 1)})


def test_its_state_is_known_to_its_code_alone() -> None:
    called = Called("cart")
    state, response = called.step(called.initial(), Invocation(CALL))
    assert (called.name, state, response) == ("cart", 1, Response("Ok"))
