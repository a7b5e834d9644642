"""What a reply weighs is about what it takes in a message, whatever its parts are."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.log import Dead, Decision, Entry, Leased, Settled, Summary, Value
from quorate.api_specs.messages import (
    Accepted,
    Change,
    Changed,
    Collected,
    Held,
    Reply,
    Reserved,
    Row,
    Scanned,
    Status,
)
from quorate.api_specs.weights import weight
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make

LEAST_SHARE = 0.8
IDS = st.text("abc/", min_size=1, max_size=500)
TIMES = st.integers(1, 99).map(lambda number: make(number, 0, "a"))
BALLOTS = TIMES.map(lambda t: make_ballot(t, 1))
VALUES = st.text("xä", max_size=300).map(lambda text: Value(f'"{text}"'))
ENTRIES = st.builds(Entry, IDS, TIMES, VALUES)


def some(each: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(each, max_size=4).map(tuple)


SUMMARIES = st.builds(
    Summary,
    horizon=TIMES,
    value=st.none() | VALUES,
    adopted=some(ENTRIES),
    ambiguous=some(st.tuples(IDS, BALLOTS)),
    recent=some(st.builds(Decision, IDS, BALLOTS, some(ENTRIES))),
    terms=some(BALLOTS),
    leases=some(st.builds(Leased, ENTRIES, holder=IDS)),
    dead=some(st.builds(Dead, ENTRIES, st.just("rejected"))),
    settled=some(st.builds(Settled, BALLOTS, st.just("accept"), some(IDS))),
)
COLLECTED = st.builds(
    Collected,
    st.just(Status()),
    summary=SUMMARIES,
    rows=some(st.builds(Row, ENTRIES)),
    events=some(st.tuples(TIMES, IDS)),
)
REPLIES = st.one_of(
    COLLECTED,
    st.builds(Accepted, st.just(Status()), then=COLLECTED),
    st.builds(Scanned, some(st.tuples(IDS, COLLECTED))),
    st.builds(Reserved, some(st.builds(Held, IDS, entries=some(ENTRIES)))),
    st.builds(Changed, st.just(1), some(st.builds(Change, IDS, arrived=some(TIMES)))),
)


@given(REPLIES)
def test_a_reply_weighs_about_what_it_takes(reply: Reply) -> None:
    assert weight(reply) >= LEAST_SHARE * len(msgspec.json.encode(reply))


@pytest.mark.parametrize(
    "summary",
    [
        Summary(settled=(Settled(make_ballot(make(1, 0, "a"), 1), "accept", ("t" * 64,) * 1024),)),
        Summary(ambiguous=(("i" * 500, make_ballot(make(1, 0, "a"), 1)),) * 100),
        Summary(recent=(Decision("d" * 500, make_ballot(make(1, 0, "a"), 1)),) * 100),
        Summary(leases=(Leased(Entry("i" * 500, make(1, 0, "a"), Value("1")), holder="h" * 500),) * 100),
    ],
    ids=["tokens", "ambiguous", "decisions", "leases"],
)
def test_long_parts_of_a_summary_count(summary: Summary) -> None:
    """Sixty such replies were 474 MB, of which a few kilobytes were counted."""
    reply = Collected(Status(), summary=summary)
    assert weight(reply) >= 50_000
    assert weight(reply) >= LEAST_SHARE * len(msgspec.json.encode(reply))


def test_values_and_ids_weigh_their_bytes() -> None:
    def of(id: str, value: str) -> int:
        entry = Entry(id, make(1, 0, "a"), Value(value))
        return weight(Collected(Status(), summary=None, rows=(Row(entry),)))

    assert of("a" * 100, "ä" * 1000) - of("a" * 100, "a" * 1000) == 1000
    assert of("ä" * 100, "a") - of("a" * 100, "a") == 100
