"""What a loop over a queue holds: room, renewals, endings and what goes back. Values in, values out."""

from collections.abc import Iterable

import pytest

from quorate.api_specs.limits import SETTLE_TOKENS_MAX
from quorate.client_sdk import Lease, LeaseLost
from quorate.client_sdk.api.prefetch import Held, Prefetch, Telling
from quorate.client_sdk.protocol.core.values import How

LEASE_S = 30.0
DUE_S = 10.0
"""A third of the lease."""
STALE_S = 20.0


def leases(tokens: Iterable[object]) -> list[Lease]:
    return [Lease(token, f"id-{token}", str(token), 1, 0.0) for token in tokens]


def holding(most: int, tokens: Iterable[object]) -> Prefetch:
    made = Prefetch(most, LEASE_S)
    made.took(leases(tokens), 0.0)
    return made


def handed_out(made: Prefetch, count: int) -> list[Held]:
    found = [made.next(0.0) for _ in range(count)]
    assert None not in found
    return [held for held in found if held is not None]


def shown(telling: Telling | None) -> tuple[str, float, list[str]] | None:
    if telling is None:
        return None
    return telling.how, telling.span_s, [lease.token for lease in telling.leases]


def test_items_are_handed_out_one_by_one_in_order() -> None:
    made = holding(8, "abc")
    assert [held.lease.token for held in handed_out(made, 3)] == ["a", "b", "c"]
    assert made.next(0.0) is None
    assert not made.has_next(0.0)


def test_more_is_taken_when_half_of_the_places_are_free() -> None:
    made = holding(8, range(8))
    assert made.room(0.0) == 0
    for held in handed_out(made, 3):
        made.end(held, "ack")
    made.to_tell()
    assert made.room(0.0) == 0, "five are held: three places are less than half"
    made.told()
    made.end(handed_out(made, 1)[0], "ack")
    assert made.room(0.0) == 0, "the fourth is not told yet"
    made.to_tell()
    assert made.room(0.0) == 4, "an acquire is decided after what is under way"


def test_more_is_taken_when_nothing_waits() -> None:
    made = holding(8, range(7))
    handed_out(made, 7)
    assert made.room(0.0) == 1


def test_what_could_not_be_told_takes_room_again_and_is_told_first() -> None:
    made = holding(4, range(4))
    for held in handed_out(made, 3):
        made.end(held, "ack")
    assert shown(made.to_tell()) == ("ack", 0.0, ["0", "1", "2"])
    made.end(handed_out(made, 1)[0], "ack")
    assert made.room(0.0) == 3
    assert made.untold == 4
    made.tell_again()
    assert made.room(0.0) == 0
    assert shown(made.to_tell()) == ("ack", 0.0, ["0", "1", "2", "3"])
    made.told()
    assert (made.untold, made.room(0.0)) == (0, 4)
    assert made.to_tell() is None


def test_each_kind_of_ending_is_a_call_the_oldest_first() -> None:
    made = holding(8, "abcdef")
    hows: list[tuple[How, float]] = [
        ("release", 0.0),
        ("ack", 0.0),
        ("release", 5.0),
        ("release", 0.0),
        ("reject", 0.0),
    ]
    for held, (how, span_s) in zip(handed_out(made, 5), hows, strict=True):
        made.end(held, how, span_s)
    told = []
    while made.has_endings:
        told.append(shown(made.to_tell()))
        made.told()
    assert told == [
        ("release", 0.0, ["a", "d"]),
        ("ack", 0.0, ["b"]),
        ("release", 5.0, ["c"]),
        ("reject", 0.0, ["e"]),
    ]


def test_one_call_names_no_more_than_it_may() -> None:
    made = holding(SETTLE_TOKENS_MAX + 2, range(SETTLE_TOKENS_MAX + 2))
    made.close()
    counts = []
    while (telling := made.to_tell()) is not None:
        counts.append(len(telling.items))
        made.told()
    assert counts == [SETTLE_TOKENS_MAX, 2]


def test_an_ending_said_again_is_harmless_and_another_one_comes_too_late() -> None:
    made = holding(8, "a")
    (held,) = handed_out(made, 1)
    made.end(held, "ack")
    made.end(held, "ack")
    assert made.untold == 1
    with pytest.raises(LeaseLost) as raised:
        made.end(held, "release")
    assert raised.value.lost == ("a",)


def test_all_that_is_held_is_renewed_when_a_third_of_one_lease_has_passed() -> None:
    made = holding(8, "ab")
    made.took(leases("c"), 4.0)
    (first,) = handed_out(made, 1)
    assert made.renew_at_s() == DUE_S
    assert made.to_renew(DUE_S - 0.1) == []
    due = made.to_renew(DUE_S)
    assert [held.lease.token for held in due] == ["a", "b", "c"]
    made.renewed(due, (), DUE_S)
    assert made.renew_at_s() == 2 * DUE_S
    made.end(first, "ack")
    assert [held.lease.token for held in made.to_renew(2 * DUE_S)] == ["b", "c"]


def test_nothing_held_is_nothing_to_renew() -> None:
    made = Prefetch(8, LEASE_S)
    assert made.renew_at_s() is None
    assert made.to_renew(1e9) == []


def test_while_a_renewal_is_late_nothing_is_taken_nor_handed_out() -> None:
    made = holding(8, "ab")
    assert made.has_next(STALE_S - 0.1)
    assert made.next(STALE_S) is None
    handed_out(made, 2)
    assert (made.room(STALE_S - 0.1), made.room(STALE_S)) == (6, 0)
    made.renewed(made.to_renew(STALE_S), (), STALE_S)
    assert made.room(STALE_S) == 6


def test_of_lost_leases_what_waits_is_dropped_and_the_caller_hears_of_the_rest() -> None:
    made = holding(8, "abcd")
    first, second = handed_out(made, 2)
    due = made.to_renew(DUE_S)
    made.end(second, "ack")
    made.renewed(due, ("a", "b", "c"), DUE_S)
    assert made.held == 1
    assert [held.lease.token for held in handed_out(made, 1)] == ["d"]
    with pytest.raises(LeaseLost):
        made.end(first, "ack")
    assert shown(made.to_tell()) == ("ack", 0.0, ["b"]), (
        "it was ended before, and the replicas say how that went"
    )


def test_who_leaves_gives_back_all_that_is_held_and_tells_what_was_said() -> None:
    made = holding(8, "abcd")
    first, second = handed_out(made, 2)
    made.end(first, "ack")
    made.close()
    assert made.next(0.0) is None
    assert made.room(0.0) == 0
    assert shown(made.to_tell()) == ("ack", 0.0, ["a"])
    made.told()
    assert shown(made.to_tell()) == ("release", 0.0, ["b", "c", "d"]), "in one call"
    with pytest.raises(LeaseLost):
        made.end(second, "ack")


def test_what_comes_after_leaving_goes_back() -> None:
    made = Prefetch(8, LEASE_S)
    made.close()
    made.took(leases("ab"), 0.0)
    assert made.next(0.0) is None
    assert shown(made.to_tell()) == ("release", 0.0, ["a", "b"])
