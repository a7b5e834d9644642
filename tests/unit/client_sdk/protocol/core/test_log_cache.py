"""The log cache: facts from replies, in whatever order and however often they come."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.log import Entry, Summary, Value
from quorate.adts.types import queue
from quorate.api_specs.messages import (
    Accept,
    Accepted,
    Append,
    Appended,
    Collect,
    Collected,
    Reply,
    Request,
    Row,
    Status,
    Window,
)
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.quorums.systems.tally import VoteCount
from quorate.timestamps.ballot import NO_BALLOT, Ballot, make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp, make

NAME = "queue/q"
VOTES = {"r1": 1, "r2": 1, "r3": 1}
TWO = VoteCount(VOTES, 2)


def at(us: int) -> Timestamp:
    return make(us, 0, "c")


def row(us: int, *, complete: bool = False, payload: bool = True) -> Row:
    return Row(Entry(at(us), at(us), Value(str(us))) if payload else Entry(at(us), at(us)), complete)


def ballot(us: int) -> Ballot:
    return NO_BALLOT if us == 0 else make_ballot(at(us), 1)


def collected(accepted: int, committed: int, rows: list[Row]) -> Collected:
    """What a replica answers that accepted and committed these terms; term n has the horizon n."""
    committed = min(accepted, committed)
    status = Status(
        accepted=ballot(accepted),
        committed=ballot(committed),
        horizon=at(committed) if committed else ZERO,
    )
    return Collected(status, summary=Summary(horizon=at(accepted) if accepted else ZERO), rows=tuple(rows))


REPLIES = st.lists(
    st.tuples(
        st.sampled_from(list(VOTES)),
        st.builds(
            collected,
            st.integers(0, 4),
            st.integers(0, 4),
            st.lists(
                st.builds(row, st.integers(1, 8), complete=st.booleans(), payload=st.just(True)), max_size=4
            ),
        ),
    ),
    max_size=6,
)


def facts(cache: LogCache) -> Any:
    """All that a plan may rest on."""
    seen = {t: (found.entry, frozenset(found.holders), found.complete) for t, found in cache.seen.items()}
    return cache.summary, cache.ballot, cache.decided, cache.after, cache.accepted_by, seen


def cache_of(replies: list[tuple[str, Collected]]) -> LogCache:
    cache = LogCache(NAME, VOTES)
    for replica, reply in replies:
        cache.absorb(replica, "i", Collect(NAME), reply)
    return cache


@given(REPLIES, st.randoms())
def test_views_do_not_depend_on_the_order_of_replies(
    replies: list[tuple[str, Collected]], random: Any
) -> None:
    shuffled = list(replies)
    random.shuffle(shuffled)
    assert facts(cache_of(replies)) == facts(cache_of(shuffled))


@given(REPLIES, REPLIES)
def test_a_reply_that_comes_twice_is_one_reply(
    replies: list[tuple[str, Collected]], more: list[tuple[str, Collected]]
) -> None:
    assert facts(cache_of(replies + more + replies)) == facts(cache_of(replies + more))


@given(
    st.lists(st.tuples(st.sampled_from(list(VOTES)), st.integers(1, 4), st.integers(1, 2)), max_size=6),
    st.randoms(),
)
def test_accepts_and_collects_may_be_learnt_of_in_any_order(
    accepts: list[tuple[str, int, int]], random: Any
) -> None:
    """An answer to an accept shows the summary that was sent; two of one ballot show the same one."""
    exchanges: list[tuple[str, Request, Reply]] = []
    for replica, term, step in accepts:
        held = make_ballot(at(term), step)
        accept = Accept(NAME, held, Summary(horizon=at(2 * term + step)))
        exchanges.append((replica, accept, Accepted(Status(accepted=held))))
        exchanges.append((replica, Collect(NAME), collected(0, 0, [row(term)])))
    shuffled = exchanges + random.sample(exchanges, len(exchanges) // 2)
    random.shuffle(shuffled)
    first, second = LogCache(NAME, VOTES), LogCache(NAME, VOTES)
    for cache, order in ((first, exchanges), (second, shuffled)):
        for replica, request, reply in order:
            cache.absorb(replica, "i", request, reply)
    assert facts(first) == facts(second)


@given(REPLIES)
def test_the_view_is_the_merge_of_the_logs_over_the_highest_summary(
    replies: list[tuple[str, Collected]],
) -> None:
    """A slow definition: all rows of all replies, above every horizon known to be decided and the summary's own."""
    cache = cache_of(replies)
    statuses = [reply.status for _, reply in replies]
    horizons = [status.horizon for status in statuses]
    top = max((status.accepted for status in statuses), default=NO_BALLOT)
    horizons += [
        reply.summary.horizon for _, reply in replies if reply.summary and reply.status.accepted == top
    ]
    rows = {
        row.entry.t for _, reply in replies for row in reply.rows if row.entry.t > max(horizons, default=ZERO)
    }
    assert [found.entry.t for found in queue.view(cache.summary, cache.by_id())] == sorted(rows)


def test_a_payload_that_comes_later_fills_the_entry() -> None:
    cache = cache_of([("r1", collected(0, 0, [row(1, payload=False)])), ("r2", collected(0, 0, [row(1)]))])
    assert cache.seen[at(1)].entry.value == "1"
    assert cache.seen[at(1)].holders == {"r1", "r2"}


def test_complete_is_what_a_final_quorum_holds_or_one_replica_knows() -> None:
    cache = cache_of([("r1", collected(0, 0, [row(1), row(2, complete=True)]))])
    assert not cache.is_complete(cache.seen[at(1)], TWO)
    assert cache.is_complete(cache.seen[at(2)], TWO)
    cache.absorb("r2", "i", Append(NAME, (row(1).entry,)), Appended(Status(), (True,)))
    assert cache.is_complete(cache.seen[at(1)], TWO)


def test_a_summary_is_decided_when_a_final_quorum_accepted_it() -> None:
    cache = cache_of([("r1", collected(3, 0, []))])
    cache.check_decided(VoteCount(VOTES, 2))
    assert not cache.is_decided
    cache.absorb("r2", "i", Collect(NAME), collected(3, 0, []))
    assert not cache.is_decided
    cache.check_decided(VoteCount(VOTES, 2))
    assert cache.is_decided
    assert cache.after == at(3)


def test_an_accepted_horizon_forgets_nothing_until_it_is_decided() -> None:
    cache = cache_of([("r1", collected(0, 0, [row(1)])), ("r2", collected(2, 0, []))])
    assert at(1) in cache.seen
    cache.learn_decided(ballot(2))
    assert at(1) not in cache.seen


def read(cache: LogCache, since: int, upto: Timestamp, *, incarnation: str = "i", more: bool = False) -> None:
    request = Collect(NAME, window=cache.window("r1", 10, True))
    cache.absorb("r1", incarnation, request, Collected(Status(), since=since, upto=upto, more=more))


def test_the_next_window_starts_where_the_last_one_ended() -> None:
    cache = LogCache(NAME, VOTES)
    read(cache, 7, at(5))
    assert cache.window("r1", 10, True) == Window(upto=at(5), since=7, limit=10)
    assert cache.window("r2", 10, True) == Window(limit=10)
    assert cache.known_upto("r1") == at(5)


def test_a_restarted_replica_is_read_afresh() -> None:
    """Its arrival numbers may have been given to other rows."""
    cache = LogCache(NAME, VOTES)
    read(cache, 7, at(5))
    cache.absorb("r1", "j", Collect(NAME), Collected(Status()))
    assert cache.window("r1", 10, True) == Window(limit=10)


def test_a_log_that_was_cut_off_is_not_known() -> None:
    cache = LogCache(NAME, VOTES)
    read(cache, 7, at(5), more=True)
    assert cache.known_upto("r1") == ZERO


def test_what_is_trimmed_is_asked_for_again() -> None:
    cache = LogCache(NAME, VOTES)
    request = Collect(NAME, window=cache.window("r1", 100, True))
    rows = tuple(row(us) for us in range(1, 10))
    cache.absorb("r1", "i", request, Collected(Status(), rows=rows, since=9, upto=INFINITY))
    cache.trim(4)
    assert sorted(cache.seen) == [at(us) for us in (1, 2, 3, 4)]
    assert cache.known_upto("r1") == at(4)
    cache.pins = 1
    cache.trim(1)
    assert len(cache.seen) == 4


def test_an_own_entry_known_to_be_complete_is_so_when_replicas_show_it_unmarked() -> None:
    """The mark may still wait; a reader with fewer holders at hand than a final quorum would write it back for nothing."""
    cache = LogCache("register/r", VOTES)
    cache.mark_complete([at(2)])
    cache.absorb("r1", "a", Collect("register/r"), Collected(Status(), rows=(row(1), row(2), row(3))))
    shown = {found.entry.t: cache.is_complete(found, TWO) for found in cache.seen.values()}
    assert shown == {at(1): False, at(2): True, at(3): False}
