"""What one caller is given of the places and bytes that a queue has for leases."""

from typing import Any

from msgspec.structs import replace

from quorate.adts.log import NOTHING, Summary, Value
from quorate.api_specs.commands import AcquireCommand, SettleCommand
from quorate.api_specs.limits import LEASES_MAX
from quorate.client_sdk.protocol.decisions.lease_table import TOO_MANY_LEASES, is_share_exceeded
from tests.unit.client_sdk.protocol.decisions.test_lease_table import (
    LEASE,
    NOW,
    at,
    entry,
    planned,
    seen,
    tokens,
)


def handed(summary: Summary, holder: str, number: int = LEASES_MAX, **context: Any) -> tuple[int, Summary]:
    """How many items the caller is given who asks for so many."""
    last = max((record.entry.t for record in summary.leases), default=at(1))
    fresh = [entry(int(str(last[:14]), 16) + n, value="1") for n in range(1, LEASES_MAX + 2)]
    context = {"leases_bytes_max": 9999} | context
    plan = planned(summary, seen(*fresh), AcquireCommand(number, LEASE, holder=holder), **context)
    given = plan.results[0]
    return (0 if given is TOO_MANY_LEASES else len(given)), plan.summary


def test_a_caller_is_given_no_more_places_than_are_left_for_others() -> None:
    summary, given = NOTHING, []
    for place in range(12):
        number, summary = handed(summary, f"caller{place}")
        given.append(number)
        assert handed(summary, f"caller{place}")[0] == 0, "and no more when it asks again"
    assert given == [512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 0]


def test_a_caller_that_settles_some_is_given_as_many_again() -> None:
    _, summary = handed(NOTHING, "one")
    settled = planned(summary, {}, SettleCommand("accept", tokens(summary)[:10])).summary
    assert handed(settled, "one")[0] == 10
    renewed = planned(summary, {}, SettleCommand("renew", tokens(summary)[:10], LEASE)).summary
    assert handed(renewed, "one")[0] == 0
    later = planned(summary, {}, SettleCommand("release", tokens(summary)[:10], 10**9)).summary
    assert handed(later, "one")[0] == 0, "what it gave back for later takes room, too"


def test_what_comes_back_goes_to_its_holder_and_to_others_as_far_as_they_have_a_share() -> None:
    _, summary = handed(NOTHING, "one")
    _, summary = handed(summary, "two")
    late = NOW + LEASE + 100
    again = planned(
        summary, {}, AcquireCommand(LEASES_MAX, LEASE, holder="one"), now=late, leases_bytes_max=9999
    )
    assert len(again.results[0]) == 512, "256 places are free: all its own, and none of another's"
    _, full_now = handed(NOTHING, "one")
    for place in range(10):
        _, full_now = handed(full_now, f"caller{place}")
    assert len(full_now.leases) == LEASES_MAX
    new = planned(full_now, {}, AcquireCommand(9, LEASE, holder="new"), now=late, leases_bytes_max=9999)
    assert len(new.results[0]) == 1, "where nothing is free, a caller that holds none is given one"
    more = planned(new.summary, {}, AcquireCommand(9, LEASE, holder="new"), now=late, leases_bytes_max=9999)
    assert more.results[0] is TOO_MANY_LEASES


def test_a_caller_is_given_no_more_bytes_than_are_left_for_others() -> None:
    large = [entry(n, value='"' + "x" * 98 + '"') for n in range(1, 12)]
    plan = planned(
        NOTHING, seen(*large), AcquireCommand(9, LEASE, holder="one"), AcquireCommand(9, LEASE, holder="two")
    )
    assert [len(plan.results[place]) for place in (0, 1)] == [5, 2]


def test_a_share_is_exceeded_by_payloads_that_come_later_but_not_by_a_first_item() -> None:
    bare = [entry(n, value="") for n in range(1, 12)]
    blind = planned(NOTHING, seen(*bare), AcquireCommand(9, LEASE, holder="one"))
    assert len(blind.results[0]) == 9
    assert not is_share_exceeded(blind.summary, {"one"}, 1000)

    def with_payloads(number: int, size: int) -> Summary:
        value = Value('"' + "x" * (size - 2) + '"')
        some = blind.summary.leases[:number]
        return Summary(leases=tuple(replace(each, entry=replace(each.entry, value=value)) for each in some))

    assert is_share_exceeded(with_payloads(9, 100), {"other", "one"}, 1000)
    assert is_share_exceeded(with_payloads(6, 100), {"one"}, 1000)
    assert not is_share_exceeded(with_payloads(5, 100), {"one"}, 1000)
    assert not is_share_exceeded(with_payloads(9, 100), {"other"}, 1000), "who is given nothing now"
    assert not is_share_exceeded(with_payloads(1, 5000), {"one"}, 1000)


def test_beside_an_item_heavier_than_a_share_others_are_given_what_fits_into_the_rest_and_what_comes_back() -> (
    None
):
    heavy, light = entry(1, value='"' + "x" * 598 + '"'), entry(2, value='"' + "x" * 398 + '"')
    held = planned(NOTHING, seen(heavy), AcquireCommand(9, LEASE, holder="one")).summary
    other = planned(held, seen(light, entry(3)), AcquireCommand(9, LEASE, holder="two"))
    assert [record.entry for record in other.results[0]] == [light], "400 bytes, all that is left"
    behind = planned(held, seen(entry(2, value='"' + "x" * 399 + '"'), entry(3)), AcquireCommand(9, LEASE))
    assert behind.results[0] is TOO_MANY_LEASES, "what does not fit holds up what is behind it"
    again = planned(
        other.summary, seen(entry(3)), AcquireCommand(9, LEASE, holder="new"), now=NOW + LEASE + 100
    )
    assert [record.entry for record in again.results[0]] == [heavy]
