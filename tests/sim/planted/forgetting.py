"""Mistakes of a replica that forgets promises, and of one that takes what it had missed from below its floor."""

from typing import Any, Final

from quorate.adts.log import NOTHING, Entry, Value
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Commit
from quorate.client_sdk.protocol.core.values import Read
from quorate.gc import pruning
from quorate.gc.collection import Promises, holds_promises_alone
from quorate.gc.tombstones import Tombstones
from quorate.replica.protocol import catch_up
from quorate.replica.protocol.log import Effect, Log, ObjectState
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp
from tests.sim.planted import caught_up
from tests.sim.planted.caught_up import KEY, X
from tests.sim.planted.plant import Plant, Planting, patched
from tests.sim.planted.played import Played
from tests.sim.planted.worlds import HISTORY

V: Final = Value('"v"')


def forget_promises_without_a_floor() -> Planting:
    """Promises alone are forgotten, and leave no floor behind: what they refused is taken."""
    right = pruning.promised_upto

    def promised_upto(store: pruning.Store, name: str) -> Timestamp | None:
        return None if right(store, name) is None else ZERO

    return patched(pruning, promised_upto=promised_upto)


def forget_rows_with_promises() -> Planting:
    """An object of which nothing was decided is forgotten, though it has rows."""

    def promised_upto(store: pruning.Store, name: str) -> Timestamp | None:
        state = store.state(name)
        if state is None or not holds_promises_alone(state):
            return None
        return max(state.fence, state.promised, store.below(name, INFINITY) or ZERO)

    return patched(pruning, promised_upto=promised_upto)


def keep_out_what_was_missed() -> Planting:
    """A replica that catches up takes no decision at or below its floor."""

    def let_in(commit: Commit, floor: Timestamp, log: Log) -> list[Effect]:
        del commit, floor, log
        return []

    return patched(catch_up, _let_in=let_in)


def keep_out_what_is_decided_of_rows() -> Planting:
    """Rows that a replica gets by catching up leave the floor where it is: what is decided of them is kept out."""
    right = catch_up._stored

    def stored(name: str, entries: tuple[Entry, ...], log: Log, floor: Timestamp) -> list[Effect]:
        del floor
        return right(name, entries, log, INFINITY)

    return patched(catch_up, _stored=stored)


def forget_what_was_decided_on_nothing_alone() -> Planting:
    """A replica by itself forgets that nothing was decided, as if it had only promised something."""

    def holds(state: Promises) -> bool:
        return isinstance(state, ObjectState) and state.summary == NOTHING

    return patched(pruning, holds_promises_alone=holds)


def compared_in_vain_under_a_key() -> None:
    """r1 alone accepts v for a compare-and-set under a key, whose repeat at r2 and r3 finds nothing, and is told that nothing was done. r2 and r3
    forget what may go. v must not show any more."""
    hand = Played()
    hand.compare_in_vain_again(KEY, X, V)
    hand.carry_commits("repeat", "r2", "r3")
    for replica in ("r2", "r3"):
        store: Any = hand.replicas[replica].store
        alone = pruning.Pruning(Tombstones(), lag_s=0, window_s=hand.document.memory_s)
        alone.round(store, hand._now(replica))
        hand.grow_old()
        hand.grow_old()
        alone.round(store, hand._now(replica))
        store.commit()
    hand.at("f4", Read(KEY), "r1", "r2")
    hand.judge()


def take_late_answers() -> Planting:
    """A replica that catches up takes an answer however old it is."""

    def is_timely(asked: Now, now: Now, limits: Limits) -> bool:
        del asked, now, limits
        return True

    return patched(catch_up, is_timely=is_timely)


PLANTED: Final = (
    Plant(
        "promises-forgotten-without-a-floor",
        forget_promises_without_a_floor,
        ("promises rise",),
        20,
        worlds="burying",
    ),
    Plant("rows-forgotten-with-promises", forget_rows_with_promises, HISTORY, 20, worlds="burying"),
    Plant(
        "nothing-decided-forgotten-alone",
        forget_what_was_decided_on_nothing_alone,
        ("linearizable",),
        schedule=compared_in_vain_under_a_key,
    ),
    Plant("missed-kept-out", keep_out_what_was_missed, ("level",), schedule=caught_up.missed_below_the_floor),
    Plant(
        "rows-under-a-floor",
        keep_out_what_is_decided_of_rows,
        ("level",),
        schedule=caught_up.rows_below_the_floor_of_a_key_that_was_deleted,
    ),
    Plant(
        "answered-too-late",
        take_late_answers,
        ("linearizable",),
        schedule=caught_up.answer_of_before_a_key_was_forgotten,
    ),
)
