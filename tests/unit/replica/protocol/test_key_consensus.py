"""What a replica promises about an idempotency key, on disk; and what stores that are made from others hold under keys."""

import pytest

from quorate.adts.log import Entry
from quorate.api_specs.messages import Held, Proposal, Refused, Reserve, Reserved
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


def reserve(ballot: int, *keys: str, number: int | None = None, accept: bool = False) -> Reserve:
    """The entries are those of the ballot's number, unless another is given."""
    proposed = entries(ballot if number is None else number)
    return Reserve("queue/q", at(ballot), tuple(Proposal(key, proposed) for key in keys), accept)


def ask(store: Store, request: Reserve) -> tuple[Held, ...]:
    reply, effects = handle(request, store, NOW_US, BOUNDS)
    store.apply(effects)
    store.commit()
    assert isinstance(reply, Reserved)
    return reply.other


def test_what_comes_first_is_held_until_a_ballot_replaces_it(store: Store) -> None:
    assert ask(store, reserve(1, "k")) == ()
    assert ask(store, reserve(2, "k")) == (Held("k", ZERO, entries(1), at(2)),)
    assert ask(store, reserve(1, "k")) == (Held("k", ZERO, entries(1), at(2), refused=True),)
    assert ask(store, reserve(2, "k", accept=True)) == ask(store, reserve(2, "k", accept=True)) == ()
    late = reserve(1, "k", accept=True)
    assert ask(store, late) == (Held("k", at(2), entries(2), at(2), refused=True),)
    assert ask(store, reserve(1, "other")) == ()
    assert store.clock >= at(2)


def test_each_key_of_a_request_is_answered_for_itself(store: Store) -> None:
    ask(store, reserve(2, "b", accept=True))
    ask(store, reserve(1, "c"))
    taken = Held("b", at(2), entries(2), at(3)), Held("c", ZERO, entries(1), at(3))
    assert ask(store, reserve(3, *"abcd")) == taken
    assert ask(store, reserve(3, *"abcd")) == taken, "what it took at first it holds as asked for"
    assert ask(store, reserve(3, *"ad", accept=True)) == ()
    assert ask(store, reserve(4, *"ab", number=3)) == (
        Held("a", at(3), entries(3), at(4)),
        Held("b", at(2), entries(2), at(4)),
    )


def test_no_new_key_is_held_where_there_is_no_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_consensus, "RESERVATIONS_MAX", 2)
    ask(store, reserve(1, "k"))
    for keys in ("lm", "klm"):
        reply, effects = handle(reserve(1, *keys), store, NOW_US, BOUNDS)
        assert isinstance(reply, Refused)
        assert (reply.reason, effects) == ("too-many-keys", [])
    assert ask(store, reserve(2, *"kl")) == (Held("k", ZERO, entries(1), at(2)),)
    assert ask(store, reserve(3, *"kl", number=2)) == (Held("k", ZERO, entries(1), at(3)),)


def test_stores_made_from_others_go_on_from_the_highest_ballot() -> None:
    held = [
        Reservation(at(9), ZERO, entries(1)),
        Reservation(at(5), at(4), entries(2)),
        Reservation(at(7), at(3), entries(3)),
    ]
    assert agreed(held, held) == Reservation(at(9), at(9), entries(2))
    assert agreed([held[0], held[0]], [held[0], held[0]]) == Reservation(at(9), at(9), entries(1)), (
        "all may have held it"
    )
    assert agreed([Reservation(), held[0]], [Reservation(), held[0]]) == Reservation(at(9)), (
        "nothing was agreed"
    )
    assert agreed([Reservation(), held[0]], ()) == Reservation(at(9), at(9), entries(1)), (
        "a backup may lack it"
    )
