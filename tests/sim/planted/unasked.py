"""Mistakes with replicas that a round did not ask: what they are told afterwards, and what they count for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.messages import Append, Appended, Collected
from quorate.client_sdk.protocol.core.rounds import Answered, Gathering
from quorate.client_sdk.protocol.core.values import Write
from quorate.client_sdk.protocol.operations import observe
from quorate.client_sdk.protocol.operations.cell_parts import StoredPart
from tests.sim.own import CODE
from tests.sim.planted.own import FEW, add, judge_by_a_look, look
from tests.sim.planted.plant import Hint, Plant, Planting, patched
from tests.sim.planted.played import Played
from tests.sim.planted.worlds import BUSY, GOOD_CLOCKS, HISTORY, QUEUE, REGISTER, chosen, only

HEDGE_S: Final = (5.0, 5.0)
"""The third replica is not asked while a schedule lasts, but by who does not know it."""


def tell_what_failed() -> Planting:
    """A round of writes and calls side by side tells those that it did not ask of all its entries, stored by a quorum or not."""

    def to_tell(self: StoredPart) -> Append:
        return Append(self.operation.object, (self._entry,))

    return patched(StoredPart, to_tell=property(to_tell))


@contextmanager
def _answered_by_all(counts: Callable[[Any], bool]) -> Iterator[None]:
    right = Gathering.note

    def note(self: Gathering, event: Answered) -> bool:
        is_ours = right(self, event)
        reply = self.replies.get(event.replica)
        if all(map(counts, reply if isinstance(reply, tuple) else (reply,))):
            for each in self.unasked:
                self.replies[each] = reply
                del self._pending[each]
            self.unasked = ()
        return is_ours

    with patched(Gathering, note=note):
        yield


def unasked_count_as_storing() -> Planting:
    """Replicas that are not asked yet count as if they had stored what the first one that was asked has stored."""
    return _answered_by_all(lambda reply: isinstance(reply, Appended))


def unasked_count_as_looked_at() -> Planting:
    """Replicas that are not asked yet count as if they had shown what the first one that was asked has shown."""
    return _answered_by_all(lambda reply: isinstance(reply, Collected) and observe.is_whole(reply))


def call_that_begins_anew_beside_a_write() -> None:
    """r1 and r2 are full of f1's calls. f2 stores add(last) and writes y in one turn, and asks r1 and r2 alone: they have no room for the call, and
    store y. The call begins anew, and is stored at both. r3 is told of y: were it told of the call as well, that would take effect twice."""
    hand = Played(
        types={"own": CODE}, limits=FEW, clock=ClockSettings(front_end_error_s=0.0), hedge_s=HEDGE_S
    )
    for front in ("f1", "f2"):
        hand.ask(front, look())
    hand.start("f2", Write("register/y", Value("0")), "before")
    hand.carry("f2", "r3")  # Whoever has not been asked of late is asked beside others.
    hand.settle()
    for number in range(4):
        hand.start("f1", add(f"{number}" + "x" * 100), f"add {number}")
        hand.carry("f1", "r1", "r2")
        hand.drop("f1")
    hand.vanish("f1")
    hand.start_together("f2", {"last": add("last" + "x" * 100), "write": Write("register/y", Value("1"))})
    hand.carry("f2", "r1", "r2")
    hand.carry_commits("f2", "r3")
    hand.go_until(Append, "f2", "r1", "r2")
    hand.carry_only(Append, "f2", "r1", "r2")
    hand.drop("f2")
    judge_by_a_look(hand)


PLANTED: Final = (
    Plant(
        "failed-told-to-the-unasked",
        tell_what_failed,
        ("linearizable",),
        schedule=call_that_begins_anew_beside_a_write,
    ),
    Plant(
        "unasked-count-as-storing",
        unasked_count_as_storing,
        ("complete", *HISTORY),
        10,
        Hint(
            QUEUE,
            chosen("queue", (0, 2), (2, 2)),
            faults=GOOD_CLOCKS,
            fields={**BUSY, **only(Enq=3, Deq=3)},
        ),
    ),
    Plant(
        "unasked-count-as-looked-at",
        unasked_count_as_looked_at,
        ("linearizable",),
        30,
        Hint(
            REGISTER,
            chosen("register", (2, 2), (2, 2)),
            faults=GOOD_CLOCKS,
            fields={**BUSY, **only(Read=4, Write=3)},
        ),
    ),
)
