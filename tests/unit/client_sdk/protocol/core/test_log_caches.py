"""Which objects a front end remembers."""

import pytest

from quorate.adts.log import Entry, Leased, Summary, Value
from quorate.api_specs.messages import Collect, Collected, Row, Status
from quorate.client_sdk.protocol.core import log_cache, log_caches
from quorate.client_sdk.protocol.core.line import Line
from quorate.client_sdk.protocol.core.log_cache import Ran
from quorate.client_sdk.protocol.core.log_caches import LogCaches
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make


def test_the_object_idle_longest_is_forgotten_unless_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "OBJECTS_MAX", 2)
    caches = LogCaches(("r1",), forget=lambda name: name != "queue/kept")
    for name in ("queue/kept", "queue/idle", "queue/new"):
        caches.of(name)
    assert [caches.held(name) is not None for name in ("queue/kept", "queue/idle", "queue/new")] == [
        True,
        False,
        True,
    ]


def test_what_somebody_holds_stays_one_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "OBJECTS_MAX", 1)
    caches = LogCaches(("r1",), forget=lambda _: True)
    held = caches.of("queue/held")
    caches.of("queue/other")
    assert caches.of("queue/held") is held


def learn(caches: LogCaches, name: str, size: int, number: int = 1) -> None:
    """A reply shows an entry of so many bytes."""
    cache, t = caches.of(name), make(number, 0, "s")
    shown = Collected(Status(), rows=(Row(Entry(t, t, Value("9" * size))),))
    cache.absorb("r1", "one", Collect(name), shown)
    caches.count(cache)


def test_of_large_values_only_so_many_bytes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "BYTES_MAX", 10_000)
    caches = LogCaches(("r1",), forget=lambda name: name != "register/busy")
    names = ["register/busy", *(f"register/{number}" for number in range(20))]
    for name in names:
        learn(caches, name, 1500)
        learn(caches, f"{name}-small", 1)
        assert sum(cache.weight() for each in names if (cache := caches.held(each))) <= 10_000
    assert caches.held("register/busy") is not None, "what is in use stays"
    assert caches.held("register/0") is None
    assert caches.held("register/19") is not None


def entries_in(caches: LogCaches, names: list[str]) -> int:
    return sum(0 if (cache := caches.held(name)) is None else len(cache.seen) for name in names)


def test_entries_without_values_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asked for the sizes of twenty long queues had a replica remember a gigabyte."""
    monkeypatch.setattr(log_caches, "BYTES_MAX", 100 * log_cache.ENTRY_BYTES)
    caches = LogCaches(("r1",), forget=lambda _: True)
    names = [f"queue/{number}" for number in range(20)]
    for name in names:
        cache = caches.of(name)
        stamps = [make(number, 0, "s") for number in range(1, 31)]
        cache.absorb(
            "r1", "one", Collect(name), Collected(Status(), rows=tuple(Row(Entry(t, t)) for t in stamps))
        )
        caches.count(cache)
        del cache  # What somebody holds stays.
        assert entries_in(caches, names) <= 100
    assert [caches.held(name) is not None for name in names[-2:]] == [True, True]


def test_the_object_used_last_stays_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be read anew for each look at it."""
    monkeypatch.setattr(log_caches, "BYTES_MAX", 1000)
    caches = LogCaches(("r1",), forget=lambda _: True)
    for name in ("queue/first", "queue/last"):
        learn(caches, name, 5000)
    assert [caches.held(name) is not None for name in ("queue/first", "queue/last")] == [False, True]


def test_what_is_replaced_again_and_again_has_nothing_else_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "BYTES_MAX", 10_000)
    caches = LogCaches(("r1",), forget=lambda _: True)
    learn(caches, "register/other", 100)
    for number in range(100):
        learn(caches, "register/busy", 100, number)
        caches.of("register/busy").drop_superseded(make(number, 0, "s"))
    assert caches.held("register/other") is not None


def test_what_a_summary_keeps_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "BYTES_MAX", 10_000)
    caches = LogCaches(("r1",), forget=lambda _: True)
    for number in range(9):
        cache, t = caches.of(f"queue/{number}"), make(number + 1, 0, "s")
        summary = Summary(horizon=t, leases=(Leased(Entry(t, t, Value(f'"{"x" * 3000}"'))),))
        status = Status(accepted=make_ballot(t, 1))
        cache.absorb("r1", "one", Collect(f"queue/{number}"), Collected(status, summary=summary))
        caches.count(cache)
    held = [number for number in range(9) if caches.held(f"queue/{number}") is not None]
    assert held[-1] == 8
    assert 1 <= len(held) <= 2


def test_a_weight_is_that_of_what_is_there_whatever_came_before() -> None:
    caches = LogCaches(("r1", "r2"), forget=lambda _: True)
    cache = caches.of("queue/q")
    small = tuple(Row(Entry(t, t, Value("9"))) for number in range(1, 100) for t in [make(number, 0, "s")])
    large = make(1000, 0, "s")
    for replica in ("r1", "r2"):
        rows = (*small, Row(Entry(large, large, Value("9" * 5000))))
        cache.absorb(replica, "one", Collect("queue/q"), Collected(Status(), rows=rows))
    cache.drop_superseded(large)
    nothing = LogCaches(("r1",), forget=bool).of("queue/q").weight()
    assert cache.weight() - nothing == log_cache.ENTRY_BYTES + 5000
    cache.ran = Ran(cache.ballot, cache.lives, [large], "9" * 100, Line())
    assert cache.weight() - nothing == log_cache.ENTRY_BYTES + 5100 + log_cache.RAN_BYTES


def test_members_of_now_are_asked_about_what_is_known_and_about_what_comes() -> None:
    caches = LogCaches(("r1", "r2"), forget=lambda _: True)
    held = caches.of("queue/held")
    caches.follow(("r1", "r4"))
    assert held.replicas == caches.of("queue/new").replicas == ("r1", "r4")


def test_where_members_change_what_was_shown_is_forgotten() -> None:
    """A deletion may have been forgotten meanwhile, of which new members know nothing; and what those alone have shown that left, nobody can tell."""
    caches = LogCaches(("r1", "r2"), lambda _: True)
    cache = caches.of("dictionary/d/k")
    t = make(1, 0, "a")
    for replicas, is_kept in ((("r2", "r1"), True), (("r1",), False), (("r1", "r3"), False)):
        cache.absorb(
            "r1", "i", Collect(cache.name), Collected(Status(), rows=(Row(Entry(t, t, Value("1"))),))
        )
        lives = cache.lives
        caches.follow(replicas)
        assert cache.replicas == replicas
        assert (bool(cache.seen), cache.lives == lives) == (is_kept, is_kept)
    assert caches.of("dictionary/d/k") is cache, "who works on it goes on with it"
