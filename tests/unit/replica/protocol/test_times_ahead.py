"""Times at which items come back, are due or expire: a replica bounds how far ahead a client may put them."""

from collections.abc import Callable

import pytest

from quorate.adts.log import Entry, Leased, Summary, Value
from quorate.adts.times import Times, entry_id
from quorate.api_specs.limits import DELAY_S_MAX
from quorate.api_specs.messages import Accept, Append, Commit, Refused, Request
from tests.unit.replica.protocol.test_acceptor import NAME, NOW_US, Replica, at, ballot, entry

FURTHEST_US = NOW_US + int(DELAY_S_MAX * 1e6) + 2_000_000


def timed(times: Times) -> Entry:
    return Entry(entry_id(at(1), "", times), at(1), Value("1"))


@pytest.mark.parametrize(
    "of",
    [
        lambda us: Append(NAME, (timed(Times(due_us=us)),)),
        lambda us: Append(NAME, (timed(Times(expires_us=us)),), "repair"),
        lambda us: Accept(NAME, ballot(1), Summary(adopted=(timed(Times(due_us=us)),))),
        lambda us: Accept(NAME, ballot(1), Summary(leases=(Leased(entry(1), until_us=us),))),
        lambda us: Accept(NAME, ballot(1), Summary(leases=(Leased(entry(1), expires_us=us),))),
        lambda us: Commit(NAME, ballot(1), at(1), Summary(leases=(Leased(entry(1), us, 1, is_held=True),))),
    ],
)
def test_an_item_is_not_kept_from_everybody_for_ever(of: Callable[[int], Request]) -> None:
    """Whoever may write could else hold an item past all times, or fill the queue's room for leases with such."""
    replica = Replica()
    reply = replica.ask(of(FURTHEST_US + 1))
    assert isinstance(reply, Refused)
    assert reply.reason == "bad-request"
    assert "ahead" in reply.detail
    assert replica.store.objects() == []
    assert not isinstance(replica.ask(of(FURTHEST_US)), Refused)
