"""Operations on several cells side by side: one round of messages for all, an outcome for each. Pure.

Those that begin in one turn of the event loop ask each replica in one send, and are told in one step what it answered. Owns
that round, and who of it ends when. What an operation makes of its own replies is its part's (`cell_parts`); one that cannot
end with this round goes on alone, and the others do not wait for it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from ....api_specs.messages import Refused, Reply, Request
from ....quorums.systems.tally import Quorum
from ..core.preference import IsEnough
from ..core.rounds import Expired, Gathering, Reconfigured, Steps, Task, is_by_clock, limit_of
from ..core.values import Operation, Outcome
from .blind import HEDGE_S
from .context import OutcomeSteps

QUORUM_FIRST_MAX: Final = 8
"""Of more operations all replicas are asked at once: under such load the second of three answers comes sooner than the slower one of two. With 64 in flight,
puts and gets of a quorum asked first made 0.89 as many a second (six alternating pairs)."""


class Alone(Struct, frozen=True):
    """The operation goes on in a task of its own, by these steps."""

    steps: Callable[[Task], OutcomeSteps]


class Part(Protocol):
    """One operation's share of the round."""

    @property
    def operation(self) -> Operation:
        """What is run."""

    @property
    def refusals(self) -> Mapping[str, Refused]:
        """The replicas that refused its request, though perhaps none of the others', and why."""

    @property
    def placeholder(self) -> Request:
        """What goes in its place once it has ended: it stores nothing."""

    def request_to(self, replica: str, *, is_repeat: bool) -> Request:
        """What to ask the replica."""

    def take(self, replica: str, reply: Reply) -> None:
        """Note what it answered."""

    @property
    def needed(self) -> Quorum:
        """Whose answers are enough, if they are what is hoped for."""

    @property
    def to_tell(self) -> Request | None:
        """What replicas that were not asked are to know, too: once it has ended, and is known to be stored."""

    def end(
        self, now_s: float, *, is_hedged: bool, is_at_large: bool, is_heard_out: bool
    ) -> Outcome | Alone | None:
        """What comes of the replies so far; None: to be waited for. `is_hedged`: silent replicas have had their time. `is_at_large`: its request may
        have reached a replica that has not refused it, or may still. `is_heard_out`: no replica is about to answer that has not."""

    def renewed(self) -> Alone:
        """The cluster has another configuration than the round was begun under."""

    def failed(self, expired: Expired, *, is_at_large: bool) -> Outcome | Alone:
        """The round came to nothing; `is_at_large`: its request may have reached a replica, or may still."""


class Host(Protocol):
    """What the round needs of the front end around it."""

    def finish(self, number: int, outcome: Outcome) -> None:
        """The operation under this number has ended."""

    def go_alone(self, number: int, operation: Operation, shared: Task, alone: Alone) -> None:
        """It goes on by itself, by the deadlines of the round's task."""


class SideBySide:
    """One such round, of `parts`: each with the numbers of the operations that it stands for."""

    def __init__(
        self, parts: Iterable[tuple[Part, list[int]]], replicas: Iterable[str], task: Task, host: Host
    ) -> None:
        self._parts: Final = tuple(part for part, _ in parts)
        self._open: Final[dict[int, tuple[Part, list[int]]]] = dict(enumerate(parts))
        """Those that have not ended, by their places in the round."""
        self._replicas: Final = tuple(replicas)
        self._task: Final = task
        self._host: Final = host
        self._asked: Final[set[str]] = set()
        self._hedge_s: Final = task.now.mono_s + HEDGE_S

    def numbers(self) -> list[int]:
        """Of the operations that have not ended."""
        return [number for _, numbers in self._open.values() for number in numbers]

    def drop(self, number: int) -> bool:
        """Nobody waits for this one any more; whether there are others."""
        for place, (_, numbers) in self._open.items():
            if number in numbers:
                numbers.remove(number)
                if not numbers:
                    del self._open[place]
                break
        return bool(self._open)

    def run(self) -> Steps:
        """Ask, and end each operation as soon as it can end."""
        round_ = Gathering(
            self._task, self._requests_to, self._replicas, self._parts[0].operation.object, self._enough()
        )
        taken: set[str] = set()

        def is_over() -> bool:
            for replica in round_.replies.keys() - taken:
                taken.add(replica)
                replies = round_.replies[replica]
                for place, (part, _) in self._open.items():
                    part.take(replica, replies[place])
            if round_.replies:
                self._end_some(round_)
            return not self._open

        try:
            yield from round_.wait(is_over, self._hedge_s)
            yield from round_.wait(is_over)
        except Expired as expired:
            self._fail_all(round_, expired)
        except Reconfigured:
            for part, numbers in self._take_open():
                self._end(part, numbers, part.renewed())
            return  # What is to be told belongs to the configuration of before.
        if round_.unasked and (known := [each for part in self._parts if (each := part.to_tell) is not None]):
            for replica in round_.unasked:
                self._task.send_lazily(replica, *known)

    def _enough(self) -> IsEnough | None:
        """Who is enough for all of it; None where all replicas are to be asked at once."""
        if len(self._parts) > QUORUM_FIRST_MAX:
            return None
        needed = {id(part.needed): part.needed for part in self._parts}.values()
        return lambda replicas: all(each.is_met_by(replicas) for each in needed)

    def _take_open(self) -> list[tuple[Part, list[int]]]:
        """Those that have not ended; they end now."""
        open_ones = list(self._open.values())
        self._open.clear()
        return open_ones

    def _requests_to(self, replica: str) -> tuple[Request, ...]:
        """The same places each time, so that any answer fits, a late one, too. What has ended is not sent again: where no replica had it, it failed for
        certain, or begins anew. What is stored is told to who is asked after that."""
        is_repeat = replica in self._asked
        self._asked.add(replica)

        def request(place: int, part: Part) -> Request:
            if place in self._open:
                return part.request_to(replica, is_repeat=is_repeat)
            return (None if is_repeat else part.to_tell) or part.placeholder

        return tuple([request(place, part) for place, part in enumerate(self._parts)])

    def _end_some(self, round_: Gathering) -> None:
        now_s = self._task.now.mono_s
        is_hedged, is_heard_out = now_s >= self._hedge_s, round_.is_heard_out
        for place, (part, numbers) in list(self._open.items()):
            is_at_large = round_.at_large > len(part.refusals)
            end = part.end(now_s, is_hedged=is_hedged, is_at_large=is_at_large, is_heard_out=is_heard_out)
            if end is None:
                continue
            del self._open[place]
            self._end(part, numbers, end)

    def _end(self, part: Part, numbers: list[int], end: Outcome | Alone) -> None:
        for number in numbers:
            if isinstance(end, Alone):
                self._host.go_alone(number, part.operation, self._task, end)
            else:
                self._host.finish(number, end)

    def _fail_all(self, round_: Gathering, expired: Expired) -> None:
        for part, numbers in self._take_open():
            refusals = part.refusals
            own = expired
            if refusals:
                answered = round_.replies.keys() - refusals.keys()
                details = {replica: refused.detail for replica, refused in refusals.items()}
                limits = (limit_of(refused) for refused in refusals.values())
                own = Expired(
                    round_.explain(details),
                    answered,
                    is_refused=expired.is_refused,
                    limit=next(filter(None, limits), expired.limit),
                    is_by_clock=expired.is_by_clock or any(map(is_by_clock, refusals.values())),
                )
            is_at_large = round_.at_large > len(refusals)
            self._end(part, numbers, part.failed(own, is_at_large=is_at_large))
