"""Protocol steps as generators, so that they read like the paper: send, wait for replies, decide. Pure.

A task's generator yields the monotonic time until which it waits, and is resumed with one event: an `Answered`, a
`Resolved`, or None when that time has come. It knows neither how messages travel nor how time is told.
"""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeGuard

from msgspec import Struct

from ....api_specs.messages import Append, Appended, ForwardedReply, Refused, Reply, Request
from ....api_specs.problems import Limit, as_limit
from ....timestamps.clock import Now
from .answer_times import RESEND_S_MAX
from .preference import IsEnough
from .values import Failed, Unanswered


class Answered(Struct, frozen=True):
    """A replica's answer to the request, or its front end's to the forwarded request, that was sent under `token`; to several requests a
    tuple."""

    replica: str
    token: int
    answer: Reply | tuple[Reply, ...] | ForwardedReply | Unanswered


class Resolved(Struct, frozen=True):
    """The decision that a task asked for has been made, or has failed."""

    result: Any


Event = Answered | Resolved | None
Requests = Request | tuple[Request, ...]
"""One, or several that go together and are answered together."""
Steps = Generator[float, Event, Any]


class FirstAsked(Struct, frozen=True):
    """Whom a round asks first: a `quorum`, and others `beside` it. The rest is asked after `hedge_s`."""

    quorum: frozenset[str]
    beside: AbstractSet[str]
    hedge_s: float


class Expired(Exception):
    """No quorum: the deadline passed, or (`is_refused`) all replicas answered and too few agreed.

    `answered` are the replicas that did answer the last round; `limit` is the bound that some of those that refused have met, `is_by_clock`: some found
    what was asked too far from their clock;
    `reached` may have acted upon a request of that round, or may still.
    """

    def __init__(
        self,
        detail: str,
        answered: Iterable[str] = (),
        *,
        is_refused: bool = False,
        limit: Limit | None = None,
        is_by_clock: bool = False,
        reached: Iterable[str] = (),
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.answered = frozenset(answered)
        self.is_refused = is_refused
        self.limit: Final = limit
        self.is_by_clock: Final = is_by_clock
        self.reached = frozenset(reached)

    def outcome(self, is_unknown: bool) -> Failed:
        """What to tell the caller; `is_unknown`: something that may take effect was sent."""
        if is_unknown:
            return Failed("unknown", self.detail, definite=False, answered=self.answered)
        refused: Literal["refused"] | Limit = self.limit or "refused"
        return Failed(
            refused if self.is_refused else "unavailable", self.detail, definite=True, answered=self.answered
        )


class Reconfigured(Exception):
    """The cluster has another configuration than the round was begun under. What was heard of it says nothing of the quorums of that one: the
    operation begins again, or the round, where it may have stored something."""


class Sender(Protocol):
    """What a task needs of the machine that runs it."""

    @property
    def epoch(self) -> int:
        """Which configuration it goes by."""

    def send_for(self, task: "Task", replica: str, requests: Requests, repeats: int = 0) -> int:
        """Send, and deliver the answer to the task under the returned token. It `repeats` what was sent under that one, if any."""

    def send_lazily(self, replica: str, *requests: Request) -> None:
        """Send along with the next message to that replica. It may be lost, and nobody hears of an answer."""

    def first_asked(self, name: str, replicas: Collection[str], is_enough: IsEnough) -> FirstAsked:
        """Which of the replicas to ask first for what is enough, of this object."""

    def note_failing(self, replica: str, *, is_silent: bool) -> None:
        """It was asked first and was silent, or refused: others were asked in its place."""

    def resend_s(self, replica: str) -> float:
        """How long to wait for the replica's answer before a request is sent again."""

    def count_round(self, kind: str, seconds: float) -> None:
        """Count one more round that met its quorum."""

    def may_be_taken(self, refused: Refused, since_s: float) -> bool:
        """Whether a replica that refused what was stamped at that moment may take it as it is when asked again."""


def limit_of(answer: object) -> Limit | None:
    """The bound that a replica refused for; None where it did not, or for another reason."""
    match answer:
        case Refused():
            return as_limit(answer.reason)
        case Unanswered():
            return answer.limit
    return None


def is_by_clock(answer: object) -> TypeGuard[Refused]:
    """Whether a replica refused since one clock, its own or the sender's, must be wrong."""
    return isinstance(answer, Refused) and answer.reason in ("clock-ahead", "clock-behind")


BEHIND_S: Final = 0.02
"""A replica that is in another configuration is asked again after so long at first: all hear of a later one at about the same time."""
SOON_S: Final = 1e-6
"""Who waits so long goes on in the driver's next turn, after all that is ready now."""


class Task:
    """One running generator: its inbox, its deadline and the present time."""

    def __init__(
        self, number: int, sender: Sender, now: Now, deadline_s: float, late_us: float = float("inf")
    ) -> None:
        self.number: Final = number
        self.deadline_s = deadline_s
        self.late_us = late_us
        """The deadline by the wall clock, with room for one that is set right: the monotonic one stands still while a machine is suspended."""
        self.urgent_s = float("inf")
        """The deadline of the most urgent whom it runs for, where that is an earlier one."""
        self.inbox: list[Event] = []
        self.steps: Steps | None = None
        self.is_begun = False
        self.is_left = False
        """Whether its caller has gone away: it ends once it is certain what it did."""
        self.on_end: Callable[[], None] | None = None
        self.served: Callable[[], list[int]] = lambda: [number]
        """The numbers of the operations that it runs for."""
        self.turn: Hashable = None
        """Who takes turns with others at decisions, where that is known."""
        self.wake_s: float = now.mono_s
        self.now = now
        self._sender = sender
        self._epoch = self._first_epoch = sender.epoch

    @property
    def is_outdated(self) -> bool:
        """Whether it goes by another configuration than the machine."""
        return self._epoch != self._sender.epoch

    @property
    def is_renewed(self) -> bool:
        """Whether it was begun under another configuration than it goes by."""
        return self._epoch != self._first_epoch

    @property
    def is_outlasted(self) -> bool:
        """Whether two configurations at least have come since it was begun. Quorums of now need not meet those it was begun under."""
        return self._epoch > self._first_epoch + 1

    def renew(self) -> None:
        """Go by the machine's configuration from now on."""
        self._epoch = self._sender.epoch

    def begin_anew(self) -> None:
        """Go by the machine's configuration, as if it had been begun under it: nothing was done before."""
        self._epoch = self._first_epoch = self._sender.epoch

    def succeed(self, other: "Task") -> None:
        """It goes on with what the other one has begun."""
        self._first_epoch = other._first_epoch

    def send(self, replica: str, requests: Requests, repeats: int = 0) -> int:
        """Send; the answer comes as an Answered with the returned token. It `repeats` what was sent under that one, if any."""
        return self._sender.send_for(self, replica, requests, repeats)

    def send_lazily(self, replica: str, *requests: Request) -> None:
        """Send along with the next message to that replica. It may be lost, and nobody hears of an answer."""
        self._sender.send_lazily(replica, *requests)

    def first_asked(self, name: str, replicas: Collection[str], is_enough: IsEnough) -> FirstAsked:
        """Which of the replicas to ask first for what is enough, of this object."""
        return self._sender.first_asked(name, replicas, is_enough)

    def note_failing(self, replica: str, *, is_silent: bool) -> None:
        """It was asked first and was silent, or refused: others were asked in its place."""
        self._sender.note_failing(replica, is_silent=is_silent)

    def resend_s(self, replica: str) -> float:
        """How long to wait for the replica's answer before a request is sent again."""
        return self._sender.resend_s(replica)

    def count_round(self, kind: str, begun_s: float) -> None:
        """Count a round that has met its quorum now."""
        self._sender.count_round(kind, self.now.mono_s - begun_s)

    def may_be_taken(self, refused: Refused, since_s: float) -> bool:
        """Whether a replica that refused what was stamped at that moment may take it as it is when asked again."""
        return self._sender.may_be_taken(refused, since_s)

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.is_late_at(self.now)

    def is_late_at(self, now: Now) -> bool:
        """Whether it has passed by then."""
        return now.mono_s >= self.deadline_s or now.wall_us > self.late_us


class Gathering:
    """Replies to one round: the same kind of request, or several of them, to each of some replicas, sent again while
    unanswered.

    Where it is said what is enough, of which object, a quorum is asked first: the others when one of it is silent or refuses, or its answers are
    not enough after all.
    """

    def __init__(
        self,
        task: Task,
        request_to: Callable[[str], Requests],
        replicas: Iterable[str],
        name: str = "",
        is_enough: IsEnough | None = None,
        since_s: float = float("inf"),
    ) -> None:
        """`since_s`: when the oldest timestamp was given of what the requests are to store, if that was before now."""
        self.replies: dict[str, Any] = {}
        """A replica's reply; a tuple of them to several requests."""
        self.troubles: dict[str, str] = {}
        self.limit: Limit | None = None
        """The bound that a replica refused for, if one did."""
        self.is_by_clock = False
        """Whether a replica refused for its clock."""
        self._full: set[str] = set()
        """The replicas that refused for a bound"""
        self._ahead: set[str] = set()
        """and those that found it too far ahead: they may take it later."""
        self._resent: set[str] = set()
        """Those that were asked again because they said nothing,"""
        self._continued: set[str] = set()
        """and those because there is more of what they said."""
        self._at_large = Counter[str]()
        """By replica, requests that may have reached it, or may still: all but those that it certainly did not act upon."""
        self._elsewhere = Counter[str]()
        """By replica, answers that it is in another configuration."""
        self._task = task
        self._request_to = request_to
        self._begun_s = task.now.mono_s
        self._since_s: Final = min(since_s, self._begun_s)
        self._kind = ""
        """The name of its requests' type."""
        self._is_counted = False
        self._pending: dict[str, tuple[float, float]] = {}
        """Until when to wait for a replica before it is asked again, and how long that is."""
        self._tokens: dict[str, list[int]] = {}
        """Sends that the replica may still answer: the first answer will do, or a slow replica would never count."""
        if task.is_outdated:
            raise Reconfigured
        self.unasked: Sequence[str] = ()
        """Those that are not asked yet."""
        self._relied_on: Collection[str] = ()
        """The quorum that is asked first."""
        self._begin(sorted(replicas), name, is_enough)

    def _begin(self, replicas: Sequence[str], name: str, is_enough: IsEnough | None) -> None:
        """Ask all, or a quorum first; in order: a set has another one in every process, and a seed would be another run."""
        hedge_s = 0.0
        if is_enough is not None:
            first = self._task.first_asked(name, replicas, is_enough)
            self._relied_on = first.quorum
            until_s = min(self._task.deadline_s, self._task.urgent_s)
            hedge_s = min(first.hedge_s, (until_s - self._begun_s) / 2)
            self.unasked = [each for each in replicas if each not in first.quorum | first.beside]
        for replica in replicas:
            if replica in self.unasked:
                self._pending[replica] = self._begun_s + hedge_s, self._task.resend_s(replica)
            else:
                self._send(replica, self._task.resend_s(replica))

    def _send(self, replica: str, delay_s: float) -> None:
        requests = self._request_to(replica)
        first = requests[0] if isinstance(requests, tuple) else requests
        self._kind = type(first).__name__
        tokens = self._tokens.setdefault(replica, [])
        tokens.append(self._task.send(replica, requests, tokens[-1] if tokens else 0))
        self._at_large[replica] += 1
        self._pending[replica] = (self._task.now.mono_s + delay_s, delay_s)

    def again(self, replica: str) -> None:
        """Ask the replica anew, with what the request is now."""
        self._continued.add(replica)
        self.replies.pop(replica, None)
        self._tokens.pop(replica, None)
        self._send(replica, self._task.resend_s(replica))

    @property
    def at_large(self) -> int:
        """How many requests may have reached their replica, or may still."""
        return self._at_large.total()

    @property
    def reached(self) -> frozenset[str]:
        """The replicas that may have acted upon a request, or may still."""
        return frozenset(replica for replica, times in self._at_large.items() if times)

    @property
    def next_resend_s(self) -> float:
        """When the next request without an answer is due again."""
        return min(self._pending.values())[0] if self._pending else float("inf")

    @property
    def lacks_room(self) -> bool:
        """Whether a replica refused for a bound, and none of the others is about to answer: each did, or has been silent for long."""
        return self.limit is not None and self._pending.keys() <= self._resent

    @property
    def is_heard_out(self) -> bool:
        """Whether nobody else is about to answer: each has, or cannot be reached."""
        return not self.unasked and self._pending.keys() <= self.troubles.keys()

    def resend_due(self) -> None:
        """Send again what has had no answer for its time; the wait doubles."""
        for replica, (due, delay_s) in list(self._pending.items()):
            if due <= self._task.now.mono_s:
                if replica in self.unasked:
                    self._ask_others(self._pending.keys() - self._continued)
                    return
                self._resent.add(replica)
                self._send(replica, max(delay_s, min(2 * delay_s, RESEND_S_MAX)))

    def note(self, event: Answered) -> bool:
        """Record an answer of this round; False when it belongs to another."""
        tokens = self._tokens.get(event.replica, [])
        if event.token not in tokens:
            return False
        is_latest = event.token == tokens[-1]
        tokens.remove(event.token)
        if isinstance(event.answer, Refused) or (
            isinstance(event.answer, Unanswered) and event.answer.definite
        ):
            self._at_large[event.replica] -= 1
        if (to_repeat := self._to_repeat(event.answer)) is not None:
            self.troubles[event.replica] = to_repeat
            if isinstance(event.answer, tuple) and all(isinstance(each, Refused) for each in event.answer):
                self._at_large[event.replica] -= 1
            if is_latest:
                _, delay_s = self._pending[event.replica]
                wait_s = self._until_again_s(event, delay_s)
                self._pending[event.replica] = (self._task.now.mono_s + wait_s, delay_s)
            return True
        del self._pending[event.replica], self._tokens[event.replica]
        self._note_why(event)
        if isinstance(event.answer, Refused | Unanswered):
            self.troubles[event.replica] = event.answer.detail
        elif not isinstance(event.answer, ForwardedReply):  # Tokens of forwarded requests are of no round.
            self.replies[event.replica] = event.answer
        return True

    def _note_why(self, event: Answered) -> None:
        if (limit := limit_of(event.answer)) is not None:
            self.limit = limit
            self._full.add(event.replica)
        if is_by_clock(event.answer):
            self.is_by_clock = True
            if event.answer.reason == "clock-ahead":
                self._ahead.add(event.replica)

    def _until_again_s(self, event: Answered, delay_s: float) -> float:
        """How long to wait before a replica that gave no useful answer is asked again: one in another configuration soon, and then for longer and
        longer; one that found a stamp behind at once, for it has shown its clock with that."""
        replies = event.answer if isinstance(event.answer, tuple) else (event.answer,)
        if any(type(each) is Refused and each.reason == "clock-behind" for each in replies):
            return 0.0
        if not isinstance(event.answer, Unanswered) or event.answer.epoch is None:
            return delay_s
        before = self._elsewhere[event.replica]
        self._elsewhere[event.replica] += 1
        return min(delay_s, BEHIND_S * (1 << min(before, 10)))

    def _to_repeat(self, answer: object) -> str | None:
        """Why the replica is to be asked again after this answer, if it is: there was none, or it took a clock for wrong that need not be."""
        if isinstance(answer, Unanswered):
            return None if answer.refused else answer.detail
        for reply in answer if isinstance(answer, tuple) else (answer,):
            if type(reply) is Refused and self._task.may_be_taken(reply, self._since_s):
                return reply.detail
        return None

    def wait(
        self, is_enough: Callable[[], bool], until_s: float = float("inf")
    ) -> Generator[float, Event, bool]:
        """Wait until `is_enough()` (True) or `until_s` (False).

        Raises Expired at the task's deadline, or when every replica has answered and it is still not enough; Reconfigured.
        """
        while not self._has(is_enough):
            if self._task.is_late:
                raise Expired(self.explain(), self.replies, reached=self.reached)
            if self.unasked and self._is_let_down:
                self._ask_others(self.troubles.keys())
            if not self._pending and not self._ask_refusing_again():
                raise Expired(
                    self.explain(),
                    self.replies,
                    is_refused=True,
                    limit=self.limit,
                    is_by_clock=self.is_by_clock,
                    reached=self.reached,
                )
            if self._task.now.mono_s >= until_s:
                return False
            event = yield min(self.next_resend_s, until_s, self._task.deadline_s)
            if isinstance(event, Answered):
                self.note(event)
            elif event is None and not self._task.is_outdated:
                self.resend_due()  # What was made under another configuration is sent in none.
        if not self._is_counted:
            self._is_counted = True
            self._task.count_round(self._kind, self._begun_s)
        return True

    def _ask_others(self, failing: Collection[str]) -> None:
        """Ask those, too, that were not asked first, in place of these, if of any."""
        for replica in self._relied_on:
            if replica in failing:
                self._task.note_failing(replica, is_silent=replica not in self.troubles)
        others, self.unasked = self.unasked, ()
        for replica in others:
            self._send(replica, self._pending[replica][1])

    @property
    def _is_let_down(self) -> bool:
        """Whether one that was asked first refuses, or cannot be reached; or all have answered, and it is not enough."""
        is_silent = False
        for replica in self._relied_on:
            if replica in self.troubles or _is_fenced(self.replies.get(replica)):
                return True
            is_silent = is_silent or replica in self._pending
        return not is_silent

    def _has(self, is_enough: Callable[[], bool]) -> bool:
        """Raises Reconfigured where the configuration is another one by now, whatever was heard."""
        if self._task.is_outdated:
            raise Reconfigured
        return is_enough()

    def _ask_refusing_again(self) -> bool:
        """Where some have stored an entry that others have no room for, it cannot be taken back; and what some took that others find too far ahead, these
        take once they hear that it is stored. Ask these again. Whether any is. (What is too far behind is not: it would come before what is complete.)"""
        is_stored = self._kind == Append.__name__ and any(
            isinstance(each, Appended) for each in self.replies.values()
        )
        again = self._full if is_stored else set()
        for replica in sorted(again | (self._ahead if self.replies else set())):
            delay_s = self._task.resend_s(replica)
            self._pending[replica] = self._task.now.mono_s + delay_s, delay_s
        self._full.clear()
        self._ahead.clear()
        return bool(self._pending)

    def explain(self, refusals: Mapping[str, str] = MappingProxyType({})) -> str:
        """Who gave an answer that counts, and what is known of the others, who may have refused or said nothing; those of
        `refusals` refused one of several requests."""
        agreed, troubles = self.replies.keys() - refusals.keys(), {**self.troubles, **refusals}
        useful = ", ".join(sorted(agreed)) or "no replica"
        silent: dict[str, list[str]] = {}
        for replica in sorted((self._pending.keys() | troubles.keys()) - agreed):
            silence = "not asked yet" if replica in self.unasked else "no answer"
            trouble = troubles.get(replica, silence).removeprefix(f"{replica}: ")
            silent.setdefault(trouble, []).append(replica)
        others = "; ".join(f"{', '.join(replicas)} ({trouble})" for trouble, replicas in silent.items())
        return f"gave a useful answer in time: {useful}; did not: {others or 'none'}"


def _is_fenced(reply: object) -> bool:
    """Whether the replica's fence refused an entry."""
    replies = reply if isinstance(reply, tuple) else (reply,)
    return any(isinstance(each, Appended) and not all(each.stored) for each in replies)
