"""Steps of the protocol moved by hand: a test plays the replicas, the proposer and the time around one generator.

What stands in for the front end towards its driver is in `tests.unit.client_sdk.scripted`. This is the other side of it: what
operations and proposers ask of the front end around them is noted here, and answered by the test.
"""

from collections import Counter
from collections.abc import Collection, Generator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from quorate.adts.log import Entry, Seen, Value
from quorate.api_specs.cluster import ChoiceRule, ClockSettings, ReplicaInfo
from quorate.api_specs.commands import ForwardableCommand
from quorate.api_specs.limits import DEFAULTS, Limits
from quorate.api_specs.messages import Collected, Reply, Request, Row, Status
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.client_sdk.protocol.core.answer_times import HEDGE_S, RESEND_S_FIRST
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.pacing import Pacing
from quorate.client_sdk.protocol.core.places import Places
from quorate.client_sdk.protocol.core.preference import IsEnough
from quorate.client_sdk.protocol.core.rounds import Answered, Event, FirstAsked, Requests, Resolved, Task
from quorate.client_sdk.protocol.core.time_now import TimeNow
from quorate.client_sdk.protocol.core.values import Failed, Send, Unanswered
from quorate.client_sdk.protocol.core.work import Work
from quorate.client_sdk.protocol.decisions.pending import CommandResult, PendingCommand
from quorate.client_sdk.protocol.decisions.transitions import Command
from quorate.quorums.choices.choice import QuorumChoice
from quorate.timestamps.ballot import NO_BALLOT, Ballot, make_ballot
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.unit.client_sdk.scripted import document_of

REPLICAS: Final = ("r1", "r2", "r3")
EXACT: Final = ClockSettings(front_end_error_s=0.0)
START_US: Final = 1_700_000_000_000_000
DEADLINE_S: Final = 10.0
STEPS_MAX: Final = 1000


def at(us: int, site: str = "c") -> Timestamp:
    """A timestamp so long after the start; before it where that is negative."""
    return make(START_US + us, 0, site)


def entry(us: int, value: str | None = "") -> Entry:
    """An entry of that time, whose value is the time unless one is given."""
    return Entry(at(us), at(us), Value(str(us)) if value == "" else None if value is None else Value(value))


def ballot(us: int, step: int = 1) -> Ballot:
    """A ballot of another front end's term."""
    return make_ballot(at(us, "o"), step)


def complete(*entries: Entry) -> tuple[Row, ...]:
    """These entries, marked as complete."""
    return tuple(Row(each, complete=True) for each in entries)


def shown(*rows: Row, fence: Timestamp = ZERO, decided: Ballot = NO_BALLOT, **more: Any) -> Collected:
    """What a replica shows whose log ends with these rows, and which has a decision of that ballot."""
    status = Status(fence=fence, accepted=decided, committed=decided, horizon=more.pop("horizon", ZERO))
    return Collected(status, rows=rows, since=len(rows), **more)


class Stage(TimeNow):
    """All that is around one task, at a time that stands still but for `sleep`."""

    def __init__(
        self,
        *choices: ChoiceRule,
        clock: ClockSettings = EXACT,
        limits: Limits = DEFAULTS,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        super().__init__(document_of(*REPLICAS, choices=choices, clock=clock, limits=limits), "s")
        self.limits: Final = limits
        self._now = Now(0.0, START_US)
        self.task: Final = self.caller(1, deadline_s)
        self.pacing: Final = Pacing()
        self.places: Final = Places(lambda _: self._resume(None))
        self.work: Final = Work()
        self.walks: Final[list[Task]] = []
        self.changing: Final[set[tuple[str, str]]] = set()
        self.sends: list[Send] = []
        """All that was sent, in order."""
        self.lazies: list[Send] = []
        self.asked_first: Sequence[str] = ()
        """Whom rounds ask first, if not all."""
        self.is_enough: IsEnough = bool
        """What was enough for the latest round."""
        self.failing: list[tuple[str, bool]] = []
        """Those in whose place others were asked, and whether they were silent."""
        self.commands: list[PendingCommand] = []
        """What the proposer was asked for and has not told."""
        self.told: list[tuple[PendingCommand, CommandResult]] = []
        """What a proposer told its callers."""
        self.complete: list[tuple[str, tuple[Timestamp, ...]]] = []
        """What was said to be complete, of which object."""
        self.counted: Counter[str] = Counter()
        self.wake_s = 0.0
        self.result: Any = None
        self.is_over = False
        self._steps: Generator[float, Event, Any] | None = None
        self._open: dict[str, Send] = {}
        self._sent_s: dict[int, float] = {}
        self._together: set[int] = set()
        """The tokens of sends whose requests are answered by a tuple, be it of one."""
        self._caches: dict[str, LogCache] = {}

    # What a test does.

    def caller(self, number: int, deadline_s: float = DEADLINE_S) -> Task:
        """A task that somebody waits for."""
        return Task(number, self, self._now, deadline_s)

    def play(self, steps: Generator[float, Event, Any]) -> None:
        """Begin these steps, or others after those of before."""
        self._steps, self.is_over, self.result = steps, False, None
        self._resume(None)

    def open_to(self, replica: str) -> Any:
        """The request to this replica that waits for an answer."""
        return self._open[replica].request

    @property
    def waiting(self) -> set[str]:
        """The replicas that have not answered."""
        return set(self._open)

    def answer(self, replica: str, *replies: Reply | Unanswered) -> None:
        """What comes of the latest send to this replica, for each of its requests; what it shows is learnt first."""
        send = self._open.pop(replica)
        if any(not isinstance(reply, Unanswered) for reply in replies):
            self.note_clock(replica, self._now.wall_us, self._sent_s[send.token])
        if isinstance(replies[0], Unanswered):
            self._resume(Answered(replica, send.token, replies[0]))
            return
        shown = [reply for reply in replies if not isinstance(reply, Unanswered)]
        for request, reply in zip(send.requests, shown, strict=True):
            if name := getattr(request, "object", ""):
                self.cache_of(name).absorb(replica, "i", request, reply)
        is_together = send.token in self._together
        self._resume(Answered(replica, send.token, tuple(shown) if is_together else shown[0]))

    def answer_all(self, reply: Reply | Unanswered, *replicas: str) -> None:
        """The same answer of each."""
        for replica in replicas:
            self.answer(replica, reply)

    def decide(self, result: Any) -> None:
        """The proposer tells what the oldest command came to; a Failed: that it failed."""
        self.commands.pop(0)
        failed = result if isinstance(result, Failed) else None
        self._resume(Resolved(CommandResult(result, frozenset({"r1", "r2"}), failed)))

    def sleep(self, seconds: float) -> None:
        """Time passes, and the task is woken whenever it wants to be."""
        until_s = self._now.mono_s + seconds
        for _ in range(STEPS_MAX):
            if self.is_over or self.wake_s > until_s:
                self._set_time(until_s)
                return
            self._set_time(max(self.wake_s, self._now.mono_s))
            self._resume(None)
        raise AssertionError(f"it does not end to want to be woken at {self.wake_s}")

    def sleep_alone(self, seconds: float) -> None:
        """Time passes for the task, and no steps wait."""
        self._set_time(self._now.mono_s + seconds)
        self.task.now = self._now

    def reconfigure(self, *members: str, is_heard: bool = True) -> None:
        """The cluster begins to change to these members, and its replicas answer nothing of before."""
        self._change_to(members)
        self._open.clear()
        if is_heard:
            self._resume(None)

    def settle(self) -> None:
        """The change comes to its end."""
        self.follow(settled(self.document))
        self._open.clear()
        self._resume(None)

    def reconfigured(self, *members: str) -> None:
        """The same, before anything is played: its task begins under both."""
        self._change_to(members)
        self.task.renew()
        self.task.succeed(self.caller(self.task.number))

    def _change_to(self, members: Sequence[str]) -> None:
        infos = tuple(ReplicaInfo(each, f"http://127.0.0.1:1/{each}") for each in members)
        self.follow(joint(self.document, replace(self.document, replicas=infos)))

    def show_clocks(self, ahead_s: float) -> None:
        """The replicas' clocks are so far ahead, as all of them have shown just now."""
        theirs_us = self._now.wall_us + int(ahead_s * 1e6)
        for replica in REPLICAS:
            self._time.measure(replica, theirs_us, self._now, self._now)

    def leave(self) -> None:
        """The caller goes away."""
        self.task.is_left = True
        self._resume(None)

    def _set_time(self, mono_s: float) -> None:
        self._now = Now(mono_s, START_US + int(mono_s * 1e6))

    def _resume(self, event: Event) -> None:
        assert self._steps is not None
        assert not self.is_over, "the steps have ended"
        self.task.now = self._now
        try:
            self.wake_s = self._steps.send(event)
            for _ in range(STEPS_MAX):
                if self.wake_s > self._now.mono_s:
                    return
                self.wake_s = self._steps.send(None)
        except StopIteration as stop:
            self.result, self.is_over = stop.value, True

    # What a task and its rounds ask for.

    def send_for(self, task: Task, replica: str, requests: Requests, repeats: int = 0) -> int:
        """See Sender."""
        sent = requests if isinstance(requests, tuple) else (requests,)
        send = self._open[replica] = Send(replica, sent, len(self.sends) + 1, repeats=repeats)
        self.sends.append(send)
        self._sent_s[send.token] = task.now.mono_s
        if isinstance(requests, tuple):
            self._together.add(send.token)
        return send.token

    def first_asked(self, name: str, replicas: Collection[str], is_enough: IsEnough) -> FirstAsked:
        """See Sender."""
        self.is_enough = is_enough
        return FirstAsked(frozenset(self.asked_first or replicas), frozenset(), HEDGE_S[0])

    def note_failing(self, replica: str, *, is_silent: bool) -> None:
        """See Sender."""
        self.failing.append((replica, is_silent))

    def resend_s(self, replica: str) -> float:
        """See Sender."""
        return RESEND_S_FIRST

    def count_round(self, kind: str, seconds: float) -> None:
        """See Sender."""
        self.counted[f"rounds of {kind}"] += 1

    # What operations and proposers ask for.

    def cache_of(self, name: str) -> LogCache:
        """See Machine."""
        return self._caches.setdefault(name, LogCache(name, REPLICAS))

    def choice_of(self, name: str) -> QuorumChoice:
        """See Machine."""
        return self.document.choice_of(name)

    def outboxes_of(self, name: str) -> Sequence[str]:
        """See Machine."""
        is_kept = self.document.rule_of(name).has_outboxes and not self.is_outbox(name)
        return [f"{name}@{replica}" for replica in REPLICAS] if is_kept else ()

    def is_outbox(self, name: str) -> bool:
        """See Machine."""
        return self.document.outbox(name) is not None

    def has_exact_empty(self, name: str) -> bool:
        """See Machine."""
        return self.document.rule_of(name).has_exact_empty and not self.is_outbox(name)

    def stamp_for(self, cache: LogCache) -> Timestamp:
        """See Machine."""
        cache.given = self._time.stamp(self._now, cache.latest, cache.given)
        return cache.given

    def wake(self, task: Task) -> None:
        """See Machine."""
        raise AssertionError(f"nobody waits for another operation, as {task.number} would")

    def ask(self, name: str, command: Command, task: Task, *, is_here: bool = False) -> PendingCommand:
        """See Machine."""
        self.commands.append(PendingCommand(command, task, is_here=is_here))
        return self.commands[-1]

    def give_up(self, name: str, asked: PendingCommand) -> str:
        """See Machine."""
        self.commands.remove(asked)
        return "r1 was silent"

    def say_complete(self, name: str, timestamps: tuple[Timestamp, ...]) -> None:
        """See Machine."""
        self.complete.append((name, timestamps))

    def resolve(self, asked: PendingCommand, verdict: CommandResult) -> None:
        """See Machine."""
        self.told.append((asked, verdict))

    def send_lazily(self, replica: str, *requests: Request) -> None:
        """See Machine."""
        self.lazies.append(Send(replica, requests, 0, lazy=True))

    def payload_source(self, name: str) -> str:
        """See Machine."""
        return REPLICAS[0]

    def random(self) -> float:
        """See Machine."""
        return 0.5

    def count(self, what: str) -> None:
        """See Machine."""
        self.counted[what] += 1

    # What forwarding asks for: there is no other front end.

    def coordinator_of(self, name: str) -> str | None:
        """See Machine."""
        return None

    def pause_coordinator(self, coordinator: str) -> None:
        """See Machine."""
        raise AssertionError(coordinator)

    def send_forwarded(
        self,
        task: Task,
        coordinator: str,
        name: str,
        commands: tuple[ForwardableCommand, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """See Machine."""
        raise AssertionError(coordinator)


def seen(*entries: Entry, holders: Sequence[str] = ("r1", "r2")) -> dict[Timestamp, Seen]:
    """These entries as a log cache has them, held by these replicas."""
    return {each.t: Seen(each, frozenset(holders)) for each in entries}
