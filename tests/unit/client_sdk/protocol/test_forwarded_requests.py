"""Hosts are greeted beside the work, and what their answers say of them counts from then on."""

from itertools import count

from quorate.api_specs.commands import DequeueCommand
from quorate.api_specs.messages import BatchReply, Collected, ForwardedReply, Status
from quorate.client_sdk.protocol.core.rounds import Answered, Task
from quorate.client_sdk.protocol.core.values import Read, Unanswered
from quorate.client_sdk.protocol.forwarded_requests import ForwardedRequests
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO, make
from tests.unit.client_sdk.protocol.core.test_rounds import Post
from tests.unit.client_sdk.scripted import document_of

NAME = "queue/q"
DOCUMENT = document_of("r1", "r2", "r3")
START_US = 1_700_000_000_000_000


def asks_of(*, may_forward: bool = True) -> ForwardedRequests:
    numbers = count(1)
    return ForwardedRequests(
        DOCUMENT,
        None,
        may_forward=may_forward,
        new_token=lambda: next(numbers),
        stamp=lambda: make(1, 0, "f"),
    )


def test_hosts_that_nobody_heard_of_are_greeted_without_commands_and_nobody_waits() -> None:
    asks = asks_of()
    assert asks.choose(NAME, 0.0) is None
    assert [send.replica for send in asks.sends] == list(asks.coordinators.ranked(NAME))
    assert all(send.request.commands == () for send in asks.sends)
    first = asks.sends[0]
    assert asks.take(first.token, ForwardedReply(first.replica, "i"), 0.1) is None, "nobody waits for it"
    assert asks.choose(NAME, 0.1) == first.replica


def test_a_greeting_that_another_replica_answers_or_nobody_makes_no_host() -> None:
    asks = asks_of()
    asks.choose(NAME, 0.0)
    first, second, _ = asks.sends
    asks.take(first.token, ForwardedReply(second.replica, "i"), 0.1)
    asks.take(second.token, Unanswered("no answer in time"), 0.1)
    assert asks.choose(NAME, 0.1) is None


def test_an_answer_goes_to_the_task_that_asked_once() -> None:
    asks = asks_of()
    asks.coordinators.heard("r1", "i", 0.0)
    task = Task(1, Post(), Now(0.0, 0), 10.0)
    token = asks.forward(task, "r1", NAME, (DequeueCommand(1),), 1.0, 1.5)
    (send,) = asks.sends
    assert (send.request.incarnation, send.request.commands, send.token) == ("i", (DequeueCommand(1),), token)
    served = ForwardedReply("r1", "i")
    assert asks.take(token, served, 0.1) == (task, Answered("r1", token, served))
    assert asks.take(token, served, 0.1) is None


def test_who_may_not_ask_greets_nobody() -> None:
    asks = asks_of(may_forward=False)
    assert asks.choose(NAME, 0.0) is None
    assert not asks.sends


def test_a_front_end_does_not_choose_a_host_whose_clock_is_far_from_its_own() -> None:
    front = FrontEnd(DOCUMENT, site="a", seed=0, may_forward=True)
    _, effects = front.start(Read("register/r"), Now(0.0, START_US), 10.0)
    first, second, third = front._forwarded.coordinators.ranked(NAME)
    clocks_us = {first: START_US + 60_000_000, second: START_US, third: START_US}
    for send in sorted(effects.sends, key=lambda each: each.replica == first):  # The wrong one is heard last.
        reply = BatchReply(send.replica, "i", ZERO, clocks_us[send.replica], (Collected(Status()),))
        front.deliver(send.replica, [send.token], reply, Now(0.0, START_US), Now(0.0, START_US))
    assert front.coordinator_of(NAME) == second


def test_requests_say_in_which_configuration_they_were_made() -> None:
    asks, later = asks_of(), document_of("r1", "r4")
    asks.follow(later)
    asks.choose(NAME, 0.0)
    assert {send.request.cluster for send in asks.sends} == {later.hash}
    assert {send.replica for send in asks.sends} == {"r1", "r4"}
