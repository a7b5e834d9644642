"""A forwarded request is served once at most: by one incarnation, whatever copies arrive, however late, and whatever clocks say."""

import random
from typing import Final

import pytest

from quorate.api_specs.commands import DequeueCommand
from quorate.api_specs.messages import ForwardedRequest
from quorate.client_sdk.protocol.decisions.forwarding import SHARED_S
from quorate.replica.protocol import at_most_once
from quorate.replica.protocol.at_most_once import COMMANDS_MAX, AtMostOnce
from quorate.timestamps.timestamp import make

NOW_US = 1_700_000_000_000_000
OFFSET_S = 2.0
AHEAD_US: Final = 60_000_000


def ask(at_us: int, site: str = "f1", incarnation: str = "i1") -> ForwardedRequest:
    return ForwardedRequest(
        "hash", make(NOW_US + at_us, 0, site), "queue/q", incarnation, (DequeueCommand(1),), 1.0
    )


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch, ids=20, senders=20)


def few(monkeypatch: pytest.MonkeyPatch, ids: int, senders: int) -> None:
    monkeypatch.setattr(at_most_once, "IDS_MAX", ids)
    monkeypatch.setattr(at_most_once, "SENDERS_MAX", senders)


class Asked:
    """A replica that is asked: its incarnation, and what that has met."""

    def __init__(self) -> None:
        self.incarnation = "i1"
        self._met: Final = AtMostOnce(OFFSET_S)

    def problem(self, request: ForwardedRequest, now_us: int) -> str | None:
        """Why it does not serve this."""
        if self._met.is_stuck(self.incarnation, now_us):
            self.incarnation = f"i{int(self.incarnation[1:]) + 1}"
        return self._met.problem(request, self.incarnation, now_us)


def test_a_copy_is_not_served() -> None:
    asked = Asked()
    assert asked.problem(ask(1), NOW_US) is None
    assert "met before" in (asked.problem(ask(1), NOW_US) or "")
    assert asked.problem(ask(0), NOW_US) is None, "an older one that comes later is another one"
    assert asked.problem(ask(1, "f2"), NOW_US) is None, "and so is that of another front end"


def test_only_the_incarnation_that_is_named_serves() -> None:
    assert "restarted" in (Asked().problem(ask(1, incarnation="i0"), NOW_US) or "")


def test_what_is_forgotten_is_not_served_again_even_if_the_clock_steps_back() -> None:
    asked = Asked()
    for number in range(200):
        assert asked.problem(ask(number), NOW_US) is None
    for number in range(200):
        assert asked.problem(ask(number), NOW_US - 1_000_000) is not None, number
    assert asked.problem(ask(200), NOW_US) is None


def test_who_was_set_back_is_served_though_later_ids_were_met() -> None:
    asked = Asked()
    for number in range(200):
        assert asked.problem(ask(number + 300_000_000), NOW_US + 300_000_000) is None
    assert asked.problem(ask(0), NOW_US) is not None, "nobody can tell"
    for number in range(200):
        assert asked.problem(ask(number, "f1x2"), NOW_US) is None
    for number in range(200):
        assert asked.problem(ask(number, "f1x2"), NOW_US) is not None
        assert asked.problem(ask(number + 300_000_000), NOW_US + 300_000_000) is not None


def test_a_sender_that_is_forgotten_is_refused_what_it_may_have_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch, ids=20, senders=2)
    asked = Asked()
    met_ones = [ask(number, f"f{number % 5}") for number in range(200)]
    for request in met_ones:
        assert asked.problem(request, NOW_US) is None
    for request in met_ones:
        assert asked.problem(request, NOW_US) is not None, request.id
    assert asked.problem(ask(0, "f9"), NOW_US) is not None, "nobody can tell it from one that is forgotten"
    assert asked.problem(ask(200, "f9"), NOW_US) is None
    for number in range(100):
        assert asked.problem(ask(number + 201, "f0"), NOW_US) is None
    for request in met_ones:
        assert asked.problem(request, NOW_US) is not None, request.id


def test_no_id_is_served_twice_whatever_the_clock_does(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    for seed in range(300):
        drawn = random.Random(seed)
        few(monkeypatch, ids=drawn.randint(1, 4), senders=drawn.randint(1, 3))
        asked = Asked()
        served: list[tuple[str, str]] = []
        sent: list[ForwardedRequest] = []
        clocks_us = (NOW_US, NOW_US + AHEAD_US)
        for _ in range(60):
            now_us = drawn.choice(clocks_us)
            new = ask(now_us - NOW_US + drawn.randint(0, 7), f"f{drawn.randint(0, 4)}", asked.incarnation)
            request = drawn.choice([new, *sent])
            sent.append(request)
            if asked.problem(request, now_us) is None:
                served.append((request.incarnation, request.id))
                taken += 1
        # One that names another incarnation is another one: who asks names the one that he has heard of, and takes a new id each time.
        assert len(served) == len(set(served)), seed
    assert taken > 1000


def test_a_clock_that_was_ahead_of_many_senders_costs_another_incarnation_and_no_copy_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few(monkeypatch, ids=20, senders=20)
    asked = Asked()
    copies = [ask(AHEAD_US + number, f"f{number}") for number in range(60)]
    for request in copies:
        assert asked.problem(request, NOW_US + AHEAD_US) is None
    assert asked.problem(ask(0, "f99"), NOW_US) is not None, "it names the one before, and may be a copy"
    assert asked.incarnation == "i2"
    for number in range(60):
        assert asked.problem(ask(number, f"g{number}", "i2"), NOW_US) is None
    for request in copies:
        assert asked.problem(request, NOW_US) is not None
        assert asked.problem(request, NOW_US + AHEAD_US) is not None
    assert asked.incarnation == "i2", "once is enough"


def test_senders_within_the_accepted_offset_cost_no_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch, ids=20, senders=2)
    asked = Asked()
    for number in range(200):
        assert asked.problem(ask(int(OFFSET_S * 1e6) + number, f"f{number}"), NOW_US + number) is None
    assert asked.problem(ask(201, "f999"), NOW_US + 201) is not None
    assert asked.incarnation == "i1"


def test_what_was_asked_long_ago_or_by_a_wrong_clock_is_refused_and_does_not_raise_the_floor() -> None:
    asked = Asked()
    far_us = int(OFFSET_S * 1e6) + 1
    for number in range(100):
        assert asked.problem(ask(far_us + number), NOW_US) is not None
        assert asked.problem(ask(-far_us - number), NOW_US) is not None
    assert asked.problem(ask(1), NOW_US) is None


def test_commands_under_way_are_bounded() -> None:
    met = AtMostOnce(OFFSET_S)
    assert met.begin(COMMANDS_MAX)
    assert not met.begin(1)
    met.end(1)
    assert met.begin(1)


def test_an_object_is_shared_while_another_front_end_asked_lately() -> None:
    met = AtMostOnce(OFFSET_S)
    assert not met.is_shared(ask(1, "f1"), 0.0)
    assert not met.is_shared(ask(2, "f1"), 1.0)
    assert met.is_shared(ask(3, "f2"), 2.0)
    assert met.is_shared(ask(4, "f1"), 3.0)
    assert met.is_shared(ask(5, "f1"), 2.0 + SHARED_S - 0.1)
    assert not met.is_shared(ask(6, "f1"), 2.0 + SHARED_S + 0.1), "the other one has gone"
