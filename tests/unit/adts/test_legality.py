"""Positions of histories: the same for those with the same futures, and in the same order in each run."""

from quorate.adts.legality import START, Legality, invocations_of
from quorate.adts.specification import Event, Invocation, Response
from quorate.adts.types.queue import Queue
from quorate.adts.types.semiqueue import Semiqueue
from tests.unit.adts.relations import Drawn


def enq(item: str) -> Event:
    return Event(Invocation("Enq", (item,)), Response("Ok"))


def deq(item: str) -> Event:
    return Event(Invocation("Deq"), Response("Ok", (item,)))


def position(legality: Legality, *history: Event) -> int | None:
    """Where a history leads, if it is legal."""
    at: int | None = START
    for event in history:
        moves = (
            {legality.events[number]: after for number, after in legality.moves(at).items()}
            if at is not None
            else {}
        )
        at = moves.get(event)
    return at


def test_every_operation_is_tried_with_every_combination_of_its_arguments() -> None:
    drawn = Drawn("", {"Both": ("a", "b"), "None": ()}, {})
    assert invocations_of(drawn) == [
        Invocation("Both", ("a",)),
        Invocation("Both", ("b",)),
        Invocation("None"),
    ]


def test_histories_that_leave_the_same_state_lead_to_the_same_position() -> None:
    legality = Legality(Queue())
    assert position(legality, enq("a"), deq("a")) == START
    assert position(legality, enq("a"), enq("b"), deq("a")) == position(legality, enq("b"))
    assert position(legality, enq("a")) != position(legality, enq("b"))


def test_what_the_specification_does_not_answer_is_not_legal() -> None:
    legality = Legality(Queue())
    assert position(legality, deq("a")) is None
    assert position(legality, enq("a"), enq("b"), deq("b")) is None


def test_a_type_that_may_answer_in_several_ways_has_each_of_them() -> None:
    legality = Legality(Semiqueue())
    assert position(legality, enq("a"), enq("b"), deq("b")) == position(legality, enq("a"))
    assert position(legality, enq("a"), enq("b"), deq("a")) == position(legality, enq("b"))


def test_an_answer_that_leaves_the_state_open_leads_to_all_states_at_once() -> None:
    """A coin that was thrown is both: each Look is legal, and settles it."""

    class Coin(Drawn):
        def outcomes(self, state: str, invocation: Invocation) -> list[tuple[str, Response]]:
            if invocation.operation == "Throw":
                return [(side, Response("Ok")) for side in ("heads", "tails")]
            return [(state, Response(state))]

    legality = Legality(Coin("heads", {"Throw": (), "Look": ()}, {}))
    throw = Event(Invocation("Throw"), Response("Ok"))
    heads, tails = (Event(Invocation("Look"), Response(side)) for side in ("heads", "tails"))
    assert position(legality, tails) is None
    assert position(legality, throw, tails) not in (None, position(legality, throw))
    assert position(legality, throw, tails, heads) is None
    assert position(legality, throw, tails, throw, heads) == START


def test_numbers_are_given_in_the_order_of_the_search() -> None:
    one, other = Legality(Queue()), Legality(Queue())
    for legality in (one, other):
        position(legality, enq("a"), enq("b"), deq("a"), deq("b"))
    assert one.events == other.events
    assert one.moves(START) == other.moves(START)
