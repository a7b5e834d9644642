"""Handing wishes on one object over to its host, whose front end decides those of many at once. Pure.

Owns when that is done, and what an answer, or none, means for the wishes:

* A front end decides for itself until it meets another one: a replica refuses it for a higher turn. From then on it hands
  over, for ROUTED_S, and for SHARED_S more whenever the host says that others ask, too. When none did for LOOK_S (those
  that it met only settled what became of their enqueues), it decides for itself again, and for ALONE_S in any case.
* A wish that may not be handed over waits for those that came before it, and for no other: once it is the oldest, all that
  wait are decided here.
* A wish is handed over once. It must not carry a key, nor may an accept that grants it be in doubt, nor may it have come
  from another front end: so no wish goes in circles.
* A host that certainly did nothing leaves the wish to its own front end. Where the answer is lost, a Front or a Tend is
  decided here (nobody could tell whether that was done twice); all others have an unknown outcome.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Final, Protocol

from ....adts.log import Entry, Leased
from ....api_specs.limits import ASK_S_MAX
from ....api_specs.messages import Granted, Served
from ....api_specs.wishes import Front, Lend, Swap, Take, Tend, Tended, WishOver
from ..core.rounds import Answered, Event, Task
from ..core.values import Failed, Unanswered
from .pending import Asked, Verdict
from .transitions import Wish

ROUTED_S: Final = 1.0
SHARED_S: Final = 5.0
LOOK_S: Final = 0.5
ALONE_S: Final = 3.0
LEFT_S_MIN: Final = 0.02
"""With less time left, a wish is not worth the way."""
HOSTS_SHARE: Final = 0.7
"""Of the least time that a caller has left, the host gets so much: when it can do nothing, for want of a quorum, its word
that it certainly did nothing must be back in time, or the caller would be told that the outcome is unknown."""
GRACE_S: Final = 0.5
"""How long an answer may travel, besides the time that the host may take."""

HandSteps = Generator[float, Event, None]
Finish = Callable[[Asked, Verdict], None]


class Machine(Protocol):
    """What handing over needs of the front end around it."""

    def host_of(self, name: str) -> str | None:
        """The replica, known to be live, whose front end should decide on the object; None: this one."""

    def send_ask(
        self,
        task: Task,
        host: str,
        name: str,
        wishes: tuple[WishOver, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """Ask the host; its answer comes to the task as an Answered with the returned token."""

    def pause_host(self, host: str) -> None:
        """Do not ask this one for a while."""

    def count(self, what: str) -> None:
        """Add one to a counter."""


class Handing:
    """The way of one object's wishes to its host."""

    def __init__(self, name: str, machine: Machine, wishes_max: int) -> None:
        self._name: Final = name
        self._machine: Final = machine
        self._wishes_max: Final = wishes_max
        self._since_s = self._until_s = self._alone_until_s = float("-inf")
        self._is_shared = False

    def meet(self, now_s: float) -> None:
        """Another front end decides on the object, too."""
        if now_s < self._alone_until_s:
            return
        if now_s >= self._until_s:
            self._since_s, self._is_shared = now_s, False
        self._until_s = max(self._until_s, now_s + ROUTED_S)

    def _hear(self, now_s: float, *, is_shared: bool) -> None:
        """The host says whether others ask, too."""
        if is_shared:
            self._until_s, self._is_shared = now_s + SHARED_S, True
        elif not self._is_shared and now_s >= self._since_s + LOOK_S:
            self._until_s, self._alone_until_s = now_s, now_s + ALONE_S

    def choose(self, batch: Sequence[Asked], now_s: float) -> tuple[str, list[Asked]] | None:
        """Whom to ask, and for which of the batch; None when it is to be decided here."""
        if now_s >= self._until_s or any(asked.is_here or asked.is_proposed for asked in batch):
            return None
        if not _may_be_handed(batch[0].wish):  # The oldest: others that keep coming must not hold it up.
            return None
        ready = [asked for asked in batch if self._may_go(asked, now_s)][: self._wishes_max]
        host = self._machine.host_of(self._name) if ready else None
        return None if host is None else (host, ready)

    def _may_go(self, asked: Asked, now_s: float) -> bool:
        return _may_be_handed(asked.wish) and asked.task.deadline_s - now_s > LEFT_S_MIN

    def hand_over(self, task: Task, host: str, batch: list[Asked], finish: Finish) -> HandSteps:
        """Ask the host, and finish what it decided; what it certainly did not is left, to be decided here."""
        wishes: list[WishOver] = []
        for asked in batch:
            assert isinstance(asked.wish, WishOver), "_may_go lets no other one through"
            wishes.append(asked.wish)
            asked.is_proposed = True
            self._machine.count("wishes handed over")
        left_s = min(asked.task.deadline_s for asked in batch) - task.now.mono_s
        limit_s = min(ASK_S_MAX, HOSTS_SHARE * max(left_s, LEFT_S_MIN))
        answer = yield from self._exchange(task, host, tuple(wishes), limit_s, limit_s + GRACE_S)
        if isinstance(answer, Served) and len(answer.results) == len(batch):
            self._take_in(task, host, answer, batch, finish)
            return
        self._machine.pause_host(host)
        definite = isinstance(answer, Unanswered) and answer.definite
        detail = (
            answer.detail if isinstance(answer, Unanswered) else "its answer does not fit what it was asked"
        )
        for asked in batch:
            self._leave(asked, f"{host} was asked to decide: {detail}", finish, definite=definite)

    def _exchange(
        self, task: Task, host: str, wishes: tuple[WishOver, ...], deadline_s: float, timeout_s: float
    ) -> Generator[float, Event, Served | Unanswered]:
        token = self._machine.send_ask(task, host, self._name, wishes, deadline_s, timeout_s)
        until_s = task.now.mono_s + timeout_s
        while task.now.mono_s < until_s:
            event = yield until_s
            if isinstance(event, Answered) and event.token == token:
                assert isinstance(event.answer, Served | Unanswered)
                return event.answer
        return Unanswered("no answer in time")

    def _take_in(self, task: Task, host: str, served: Served, batch: list[Asked], finish: Finish) -> None:
        self._hear(task.now.mono_s, is_shared=served.is_shared)
        if not any(isinstance(result, Granted) for result in served.results):
            self._machine.pause_host(host)
        for asked, result in zip(batch, served.results, strict=True):
            if isinstance(result, Granted):
                finish(asked, Verdict(_given(asked.wish, result), frozenset(result.answered)))
            else:
                detail = f"{host} was asked to decide: {result.detail}"
                self._leave(asked, detail, finish, definite=result.definite)

    def _leave(self, asked: Asked, detail: str, finish: Finish, *, definite: bool) -> None:
        """The host did not decide the wish, or its answer is lost."""
        if definite or isinstance(asked.wish, Front | Tend):
            self._machine.count(f"wishes of {'refused' if definite else 'lost'} asks decided here")
            asked.is_here, asked.is_proposed = True, False
            asked.may_be_done = not definite and isinstance(asked.wish, Tend)
            return
        self._machine.count("wishes of lost asks unknown")
        finish(asked, Verdict(failed=Failed("unknown", detail, definite=False)))


def _may_be_handed(wish: Wish) -> bool:
    """Whether another front end may decide it: neither one with a key nor one of the protocol itself."""
    return isinstance(wish, Front | Lend | Tend) or (isinstance(wish, Take | Swap) and not wish.key)


Given = tuple[Entry | Leased, ...] | Tended | bool
"""What a wish that was handed over results in."""


def _given(wish: Wish, result: Granted) -> Given:
    match wish:
        case Swap():
            return result.swapped
        case Lend():
            return result.leases
        case Tend():
            return result.tended
    return result.entries


def granted(result: Given, answered: frozenset[str]) -> Granted:
    """A wish's result as it goes back to the front end that asked."""
    by = tuple(sorted(answered))
    if isinstance(result, bool):
        return Granted(swapped=result, answered=by)
    if isinstance(result, Tended):
        return Granted(tended=result, answered=by)
    entries = tuple(part for part in result if isinstance(part, Entry))
    return Granted(entries, tuple(part for part in result if isinstance(part, Leased)), answered=by)
