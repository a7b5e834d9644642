"""What types cannot say of a batch is checked before the machine sees it."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.log import Dead, Decision, Entry, Leased, Settled, Summary, Value
from quorate.api_specs.checking import (
    COUNT_MAX,
    ID_CHARS_MAX,
    BadBatch,
    check_announcement,
    check_batch,
)
from quorate.api_specs.limits import (
    ADOPTED_MAX,
    AMBIGUOUS_MAX,
    DEAD_MAX,
    DEFAULTS,
    DELIVERIES_MAX,
    LEASES_MAX,
    SETTLED_MAX,
    Limits,
)
from quorate.api_specs.messages import (
    Accept,
    Announcement,
    Append,
    Batch,
    BatchReply,
    Collect,
    Commit,
    Refused,
    Request,
    Scan,
    Window,
)
from quorate.timestamps.ballot import NO_BALLOT, Ballot, make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, make

NAME = "queue/q"
PLACE = f"00-{7:032x}-{7:016x}-01"
AT = make(1, 0, "c")
BALLOT = make_ballot(AT, 1)
ENTRY = Entry(AT, AT, Value("1"))
SUMMARY = Summary(
    AT,
    Value("1"),
    (ENTRY,),
    ((AT, BALLOT),),
    (Decision("k", BALLOT, (ENTRY,)),),
    (BALLOT,),
    BALLOT,
    (Leased(ENTRY, 5, 1, True, 7, 1),),
    (Dead(ENTRY, "expired", 2),),
    (Settled(BALLOT, "accept", ("0123456789abcdef",)),),
)
GOOD: list[Request] = [
    Append(NAME, (ENTRY,)),
    Collect(NAME, BALLOT, AT, 5, Window(ZERO, INFINITY, 3, 4), BALLOT, (AT,)),
    Accept(NAME, BALLOT, SUMMARY, "e", Collect(NAME)),
    Commit(NAME, BALLOT, AT, SUMMARY, (AT,), AT),
    Scan("dictionary/users/", "", 10),
]


def with_(base: Any, **fields: Any) -> Any:
    return replace(base, **fields)


def of_summary(**fields: Any) -> Accept:
    return Accept(NAME, BALLOT, with_(SUMMARY, **fields))


def test_what_a_front_end_sends_passes() -> None:
    assert not check_batch(Batch("c", tuple(GOOD)), DEFAULTS).refused


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Append("queue/../x", ()), "object: must be TYPE/NAME"),
        (Append(NAME, (with_(ENTRY, t="now"),)), "'now' is not a timestamp"),
        (Append(NAME, (with_(ENTRY, t=INFINITY),)), "can only bound a window"),
        (Append(NAME, (with_(ENTRY, id=""),)), f"id: must be 1 to {ID_CHARS_MAX}"),
        (Append(NAME, (with_(ENTRY, id="a" * (ID_CHARS_MAX + 1)),)), "id: must be"),
        (Append(NAME, (with_(ENTRY, id="a\n"),)), "printable ASCII"),
        (Append(NAME, (with_(ENTRY, value="{"),)), "the value is not JSON text"),
        (Append(NAME, (with_(ENTRY, value="NaN"),)), "the value is not JSON text"),
        (Append(NAME, (with_(ENTRY, value='"' + "x" * 50 + '"'),)), "over 50 bytes"),
        (Append(NAME, (ENTRY,) * 9), "entries: 9 of them, at most 8"),
        (Collect(NAME, ballot="b"), "'b' is not a ballot"),  # type: ignore[arg-type]
        (Collect(NAME, ballot=make_ballot(INFINITY, 0)), "cannot be a term"),
        (Collect(NAME, known=BALLOT + "x"), "is not a ballot"),  # type: ignore[arg-type]
        (Collect(NAME, fence=INFINITY), "can only bound a window"),
        (Collect(NAME, fence_next=-1), "fence_next: must be 0 to"),
        (Collect(NAME, window=Window(limit=-1)), "limit: must be 0 to"),
        (Collect(NAME, window=Window(since=COUNT_MAX + 1)), "since: must be 0 to"),
        (Collect(NAME, window=Window(after="x")), "is not a timestamp"),  # type: ignore[arg-type]
        (Collect(NAME, wanted=(AT,) * 11), "wanted: 11 of them"),
        (of_summary(horizon="x"), "is not a timestamp"),
        (of_summary(value="{"), "not JSON"),
        (of_summary(adopted=(with_(ENTRY, t="x"),)), "is not a timestamp"),
        (of_summary(adopted=(ENTRY,) * (ADOPTED_MAX + 1)), f"adopted: {ADOPTED_MAX + 1} of them"),
        (of_summary(recent=(Decision("k", BALLOT, (ENTRY,) * 9),)), "entries: 9 of them, at most 8"),
        (of_summary(leases=(Leased(ENTRY),) * (LEASES_MAX + 1)), f"leases: {LEASES_MAX + 1} of them"),
        (of_summary(leases=(Leased(with_(ENTRY, value="{")),)), "the value is not JSON text"),
        (of_summary(leases=(Leased(ENTRY, until_us=-1),)), "leases: times"),
        (of_summary(leases=(Leased(ENTRY, expires_us=1 << 57),)), "leases: times"),
        (of_summary(leases=(Leased(ENTRY, deliveries=-1),)), "deliveries: must be 0"),
        (of_summary(leases=(Leased(ENTRY, holder="x" * 65),)), "holder: must be at most 64"),
        (of_summary(leases=(Leased(ENTRY, deliveries=DELIVERIES_MAX + 1),)), "quorate repair queue/q"),
        (of_summary(leases=(Leased(ENTRY, deliveries=2, excused=3),)), "excused: must be 0 to 2"),
        (of_summary(dead=(Dead(ENTRY, "expired", DELIVERIES_MAX + 1),)), "deliveries: must be 0"),
        (of_summary(leases=(Leased(ENTRY, excused=-1),)), "excused: must be 0"),
        (of_summary(dead=(Dead(ENTRY, "expired"),) * (DEAD_MAX + 1)), f"dead: {DEAD_MAX + 1} of them"),
        (of_summary(settled=(Settled(BALLOT, "drop", ()),) * (SETTLED_MAX + 1)), "settled: 1025 of them"),
        (of_summary(settled=(Settled(Ballot("x"), "drop", ()),)), "is not a ballot"),
        (of_summary(settled=(Settled(BALLOT, "drop", ("x" * 65,)),)), "settled: must be"),
        (of_summary(settled=(Settled(BALLOT, "drop", ("x",) * 513),) * 2), "settled: they carry 1026 entries or tokens"),
        (of_summary(recent=(Decision("k", BALLOT, (ENTRY,) * 801),) * 5), "recent: they carry 4005 entries or tokens"),
        (of_summary(ambiguous=(("", BALLOT),)), "id: must be"),
        (of_summary(ambiguous=(("a", make_ballot(INFINITY, 1)),)), "cannot be a term"),
        (of_summary(recent=(Decision("", BALLOT),)), "id: must be"),
        (of_summary(recent=(Decision("k", NO_BALLOT),) * 11), "recent: 11 of them"),
        (of_summary(terms=("x",)), "is not a ballot"),
        (of_summary(terms=(BALLOT,) * 101), "terms: 101 of them, at most 100"),
        (of_summary(ambiguous=((AT, BALLOT),) * (AMBIGUOUS_MAX + 1)), f"ambiguous: {AMBIGUOUS_MAX + 1} of them"),
        (of_summary(recent=(Decision("k", BALLOT, digest="é"),)), "digest: must be at most"),
        (of_summary(recent=(Decision("k", BALLOT, digest="0" * 65),)), "digest: must be at most"),
        (of_summary(terms_floor="x"), "is not a ballot"),
        (Accept(NAME, BALLOT, SUMMARY, then=Collect("queue/other")), "must be about the same object"),
        (Accept(NAME, BALLOT, SUMMARY, then=Collect(NAME, fence_next=-1)), "fence_next"),
        (Commit(NAME, complete=(INFINITY,)), "can only bound a window"),
        (Commit(NAME, complete=(AT,) * 8193), "complete: 8193 of them, at most 8192"),
        (Commit(NAME, summary=with_(SUMMARY, value="{")), "not JSON"),
        (Scan("ä"), "prefix: must be at most"),
        (Scan("", after="x" * 1000), "after: must be at most"),
        (Scan("", limit=-1), "limit: must be 0"),
        (Scan("", newest=-1), "newest: must be 0"),
    ],
)  # fmt: skip
def test_what_is_out_of_form_is_refused_and_its_request_named(request_: Request, sentence: str) -> None:
    limits = Limits(page_entries_max=10, batch_items_max=8, recent_decisions_max=10, value_bytes_max=50)
    found = check_batch(Batch("c", (GOOD[0], request_, GOOD[0]), ("", PLACE, "")), limits)
    assert found.sound == Batch("c", (GOOD[0], GOOD[0]), ("", ""))
    assert found.refused.keys() == {1}
    assert re.match(rf"requests\[1\]: .*{sentence}", found.refused[1].detail)
    with pytest.raises(BadBatch, match=rf"^requests\[0\]: .*{sentence}"):
        check_batch(Batch("c", (request_,)), limits)


def test_an_enqueue_may_be_longer_than_a_page_of_a_reply() -> None:
    limits = Limits(page_entries_max=1, batch_items_max=9)
    assert not check_batch(
        Batch("c", (Append(NAME, (ENTRY,) * 9), of_summary(adopted=(ENTRY,) * 9))), limits
    ).refused


def test_a_batch_is_bounded() -> None:
    limits = Limits(requests_max=2)
    assert not check_batch(Batch("c", (GOOD[0],) * 2), limits).refused
    with pytest.raises(BadBatch, match="requests: 3 of them, at most 2"):
        check_batch(Batch("c", (GOOD[0],) * 3), limits)


def test_a_reply_to_the_first_of_what_is_sound_ends_before_what_was_not_answered() -> None:
    bad = Scan("", limit=-1)
    found = check_batch(Batch("c", (bad, GOOD[0], bad, GOOD[0], bad)), DEFAULTS)
    told = tuple(found.refused.values())
    given = Refused("too-old", "")
    for answered, expected in (
        (1, (told[0], given, told[1])),
        (2, (told[0], given, told[1], given, told[2])),
    ):
        reply = BatchReply("r1", "i", AT, 0, (given,) * answered)
        assert found.whole(reply).replies == expected


ANNOUNCED = Announcement("c", "r2", "store", AT, born="b1")


@pytest.mark.parametrize("change", [{}, {"replica": "r9"}, {"born": ""}, {"clock": ZERO}])
def test_any_replica_but_itself_may_announce_its_store_also_one_that_is_no_member(
    change: dict[str, Any],
) -> None:
    check_announcement(with_(ANNOUNCED, **change), "r1", ("r7",))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"replica": "r1"}, "replica: must be the id of another replica"),
        ({"replica": "R2"}, "replica: must be the id of another replica"),
        ({"replica": ""}, "replica: must be the id of another replica"),
        ({"replica": "r" * 17}, "replica: must be the id of another replica"),
        ({"replica": "r7"}, "replica: it was a member before, and is none now: give a new replica another"),
        ({"store": ""}, "announcement: id: must be 1 to"),
        ({"store": "a\n"}, "announcement: .*printable ASCII"),
        ({"born": "b" * (ID_CHARS_MAX + 1)}, "announcement: id: must be"),
        ({"clock": "now"}, "announcement: 'now' is not a timestamp"),
        ({"clock": INFINITY}, "announcement: .*can only bound a window"),
    ],
)
def test_an_announcement_out_of_form_or_of_who_was_a_member_is_refused(
    change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadBatch, match=sentence):
        check_announcement(with_(ANNOUNCED, **change), "r1", ("r7",))
