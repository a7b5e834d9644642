"""A forwarded request is served once at most: by one incarnation, whatever copies arrive, however late, and whatever clocks say."""

import random

from quorate.api_specs.commands import DequeueCommand
from quorate.api_specs.messages import ForwardedRequest
from quorate.client_sdk.protocol.decisions.forwarding import SHARED_S
from quorate.replica.protocol.at_most_once import COMMANDS_MAX, AtMostOnce
from quorate.timestamps.timestamp import make

NOW_US = 1_700_000_000_000_000
OFFSET_S = 2.0


def ask(at_us: int, site: str = "f1", incarnation: str = "i1") -> ForwardedRequest:
    return ForwardedRequest(
        "hash", make(NOW_US + at_us, 0, site), "queue/q", incarnation, (DequeueCommand(1),), 1.0
    )


def asks(senders_max: int = 20) -> AtMostOnce:
    return AtMostOnce("i1", OFFSET_S, ids_max=20, senders_max=senders_max)


def test_a_copy_is_not_served() -> None:
    met = asks()
    assert met.problem(ask(1), NOW_US) is None
    assert "met before" in (met.problem(ask(1), NOW_US) or "")
    assert met.problem(ask(0), NOW_US) is None, "an older one that comes later is another one"
    assert met.problem(ask(1, "f2"), NOW_US) is None, "and so is that of another front end"


def test_only_the_incarnation_that_is_named_serves() -> None:
    assert "restarted" in (asks().problem(ask(1, incarnation="i0"), NOW_US) or "")


def test_what_is_forgotten_is_not_served_again_even_if_the_clock_steps_back() -> None:
    met = asks()
    for number in range(200):
        assert met.problem(ask(number), NOW_US) is None
    for number in range(200):
        assert met.problem(ask(number), NOW_US - 1_000_000) is not None, number
    assert met.problem(ask(200), NOW_US) is None


def test_who_was_set_back_is_served_though_later_ids_were_met() -> None:
    met = asks()
    for number in range(200):
        assert met.problem(ask(number + 300_000_000), NOW_US + 300_000_000) is None
    assert met.problem(ask(0), NOW_US) is not None, "nobody can tell"
    for number in range(200):
        assert met.problem(ask(number, "f1x2"), NOW_US) is None
    for number in range(200):
        assert met.problem(ask(number, "f1x2"), NOW_US) is not None
        assert met.problem(ask(number + 300_000_000), NOW_US + 300_000_000) is not None


def test_a_sender_that_is_forgotten_is_refused_what_it_may_have_sent() -> None:
    met = asks(senders_max=2)
    met_ones = [ask(number, f"f{number % 5}") for number in range(200)]
    for request in met_ones:
        assert met.problem(request, NOW_US) is None
    for request in met_ones:
        assert met.problem(request, NOW_US) is not None, request.id
    assert met.problem(ask(0, "f9"), NOW_US) is not None, "nobody can tell it from one that is forgotten"
    assert met.problem(ask(200, "f9"), NOW_US) is None
    for number in range(100):
        assert met.problem(ask(number + 201, "f0"), NOW_US) is None
    for request in met_ones:
        assert met.problem(request, NOW_US) is not None, request.id


def test_no_id_is_served_twice() -> None:
    for seed in range(300):
        drawn = random.Random(seed)
        met = AtMostOnce("i1", OFFSET_S, ids_max=drawn.randint(1, 4), senders_max=drawn.randint(1, 3))
        requests = [ask(drawn.randint(0, 7), f"f{drawn.randint(0, 4)}") for _ in range(60)]
        served = [request.id for request in requests if met.problem(request, NOW_US) is None]
        assert len(served) == len(set(served)), seed


def test_what_was_asked_long_ago_or_by_a_wrong_clock_is_refused_and_does_not_raise_the_floor() -> None:
    met = asks()
    far_us = int(OFFSET_S * 1e6) + 1
    for number in range(100):
        assert met.problem(ask(far_us + number), NOW_US) is not None
        assert met.problem(ask(-far_us - number), NOW_US) is not None
    assert met.problem(ask(1), NOW_US) is None


def test_commands_under_way_are_bounded() -> None:
    met = asks()
    assert met.begin(COMMANDS_MAX)
    assert not met.begin(1)
    met.end(1)
    assert met.begin(1)


def test_an_object_is_shared_while_another_front_end_asked_lately() -> None:
    met = asks()
    assert not met.is_shared(ask(1, "f1"), 0.0)
    assert not met.is_shared(ask(2, "f1"), 1.0)
    assert met.is_shared(ask(3, "f2"), 2.0)
    assert met.is_shared(ask(4, "f1"), 3.0)
    assert met.is_shared(ask(5, "f1"), 2.0 + SHARED_S - 0.1)
    assert not met.is_shared(ask(6, "f1"), 2.0 + SHARED_S + 0.1), "the other one has gone"
