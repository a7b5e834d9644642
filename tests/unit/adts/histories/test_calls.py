"""How a call reads."""

from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.specification import Invocation, Response


def test_a_call_reads_as_what_was_asked_and_what_came_back() -> None:
    enq = Call("p", "queue/q", Invocation("Enq", ("a",)), 1, 5, (Response("Ok"),))
    assert str(enq) == "Enq(a) → Ok"
    deq = Call("p", "queue/q", Invocation("Deq"), 1, 5, (Response("Ok", ("a",)),))
    assert str(deq) == "Deq() → Ok(a)"
    assert str(enq.until(4)) == "Enq(a) → ?"


def test_what_returned_later_was_unknown_before() -> None:
    call = Call("p", "register/r", Invocation("Read"), 1, 5, (Response("Ok", (None,)),))
    assert call.is_known
    assert call.until(5) == call
    assert call.until(4) == call._replace(returned=NEVER, answers=())
    assert not call.until(4).is_known
