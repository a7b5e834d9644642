"""What a failed operation says of itself must be true: "definite" only where nothing happened and nothing will.

Schedules by hand, as in `test_directed`.
"""

from quorate.client_sdk.protocol.core.values import Enqueue, Failed, Outcome, Peek
from tests.sim.schedules.hand import Hand
from tests.sim.schedules.test_directed import MAJORITIES, QUEUE, X, enqueue

STEPS_MAX = 1000


def _unanswered(hand: Hand, front: str, name: str) -> Outcome:
    """The outcome when all that the front end sends from now on is lost."""
    for _ in range(STEPS_MAX):
        hand.drop(front)
        if name in hand.outcomes:
            return hand.outcomes[name]
        hand.sleep()
    raise AssertionError(f"{name} never ends")


def test_an_observation_without_an_answer_is_never_unknown() -> None:
    """A Peek must settle the front entry; its accept is lost. Whoever asked learns that there is no answer, for sure."""
    hand = Hand(MAJORITIES)
    hand.ask("f0", enqueue(X))
    hand.packets.clear()
    hand.start("f1", Peek(QUEUE), "peek")
    hand.carry("f1", "r1", "r2")
    outcome = _unanswered(hand, "f1", "peek")
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.definite) == ("unavailable", True)


def test_a_repeat_that_comes_too_late_does_not_say_that_nothing_happened() -> None:
    """The first attempt took effect; its key is still remembered, but the entry's timestamp is too old to be retried."""
    hand = Hand(MAJORITIES)
    keyed = Enqueue(QUEUE, (X,), key="k")
    hand.ask("f1", keyed)
    hand.sleep(int(hand.document.limits.repeats_s * 1e6))
    hand.start("f2", keyed, "again")
    hand.settle()
    outcome = hand.outcomes["again"]
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.definite) == ("unknown", False)


def test_an_enqueue_whose_answers_are_lost_is_not_definite() -> None:
    """Its messages left; whether one arrived, nobody can tell it."""
    hand = Hand(MAJORITIES)
    hand.start("f1", enqueue(X), "sent")
    outcome = _unanswered(hand, "f1", "sent")
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.definite) == ("unknown", False)
