"""What a replica promises about an idempotency key, on disk; and what stores that are made from others hold under keys."""

import pytest

from quorate.adts.log import Entry
from quorate.api_specs.messages import Refused, Reserve, Reserved
from quorate.replica.data_folder.replacement import agreed
from quorate.replica.protocol import key_consensus
from quorate.replica.protocol.acceptor import handle
from quorate.replica.protocol.log import Reservation
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.store.store import Store
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.unit.replica.conftest import one_replica

NOW_US = 1_000_000_000
BOUNDS = Bounds.of(one_replica())


def at(number: int) -> Timestamp:
    return make(NOW_US, number, "s")


def entries(number: int) -> tuple[Entry, ...]:
    return (Entry(at(number), at(number)),)


def ask(store: Store, request: Reserve) -> Reserved:
    reply, effects = handle(request, store, NOW_US, BOUNDS)
    store.apply(effects)
    store.commit()
    assert isinstance(reply, Reserved)
    return reply


def test_what_comes_first_is_held_until_a_ballot_replaces_it(store: Store) -> None:
    first = Reserve("queue/q", "k", at(1), entries(1))
    assert ask(store, first) == Reserved(ZERO, entries(1), at(1))
    assert ask(store, Reserve("queue/q", "k", at(2), entries(2))) == Reserved(ZERO, entries(1), at(2))
    assert ask(store, first) == Reserved(ZERO, entries(1), at(2), refused=True)
    accept = Reserve("queue/q", "k", at(2), entries(2), accept=True)
    assert ask(store, accept) == ask(store, accept) == Reserved(at(2), entries(2), at(2))
    late = Reserve("queue/q", "k", at(1), entries(1), accept=True)
    assert ask(store, late) == Reserved(at(2), entries(2), at(2), refused=True)
    assert ask(store, Reserve("queue/q", "other", at(1), entries(1))) == Reserved(ZERO, entries(1), at(1))
    assert store.clock >= at(2)


def test_no_new_key_is_held_where_there_is_no_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_consensus, "RESERVATIONS_MAX", 1)
    ask(store, Reserve("queue/q", "k", at(1), entries(1)))
    reply, effects = handle(Reserve("queue/q", "l", at(1), entries(1)), store, NOW_US, BOUNDS)
    assert isinstance(reply, Refused)
    assert (reply.reason, effects) == ("too-many-keys", [])
    assert ask(store, Reserve("queue/q", "k", at(2), entries(2))).entries == entries(1)


def test_stores_made_from_others_go_on_from_the_highest_ballot() -> None:
    held = [
        Reservation(at(9), ZERO, entries(1)),
        Reservation(at(5), at(4), entries(2)),
        Reservation(at(7), at(3), entries(3)),
    ]
    assert agreed(held) == Reservation(at(9), at(9), entries(2))
    assert agreed([Reservation(), held[0]]) == Reservation(at(9), at(9), entries(1))
