"""How events are written, and what follows from their classes."""

from quorate.adts.specification import Event, Invocation, Response, operation_of, outcomes_of
from quorate.adts.types.queue import Queue
from quorate.adts.types.semiqueue import Semiqueue


def test_an_event_is_written_as_the_paper_writes_it() -> None:
    event = Event(Invocation("Cas", ("k", None, 1)), Response("Ok", (frozenset({("k", 1), ("j", 2)}), ())))
    assert str(event) == "[Cas(k, null, 1); Ok({(j, 2), (k, 1)}, ())]"
    assert event.event_class == "Cas/Ok"


def test_an_event_class_begins_with_its_operation() -> None:
    assert operation_of("Deq/Empty") == "Deq"


def test_a_deterministic_type_has_one_outcome_and_others_all_of_theirs() -> None:
    deq = Invocation("Deq")
    assert list(outcomes_of(Queue(), ("a", "b"), deq)) == [(("b",), Response("Ok", ("a",)))]
    assert [response for _, response in outcomes_of(Semiqueue(), ("a", "b"), deq)] == [
        Response("Ok", ("a",)),
        Response("Ok", ("b",)),
    ]
