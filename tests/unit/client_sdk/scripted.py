"""A scripted front end and a scripted network, for the mechanics of driver and link alone.

The machine sends one read to each replica that an operation's script names, and finishes when all have answered.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence

from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClockSettings, ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import (
    Batch,
    BatchReply,
    Collect,
    Collected,
    Commit,
    Committed,
    ForwardedReply,
    Request,
    Status,
)
from quorate.client_sdk.protocol.configurations import joint
from quorate.client_sdk.protocol.core.pacing import Pacing
from quorate.client_sdk.protocol.core.values import (
    Answer,
    Done,
    Effects,
    Finish,
    Operation,
    Read,
    Send,
    SendForwarded,
    Unanswered,
)
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO
from tests.support.exchanging import Exchanging


def document_of(
    *replicas: str,
    choices: tuple[ChoiceRule, ...] = (),
    clock: ClockSettings | None = None,
    limits: Limits | None = None,
) -> ClusterDocument:
    """A cluster of these replicas, at addresses where nobody listens."""
    infos = tuple(ReplicaInfo(each, f"http://127.0.0.1:1/{each}") for each in replicas)
    return ClusterDocument("scripted", infos, choices, clock or ClockSettings(), limits or Limits())


def changed(document: ClusterDocument, *more: str) -> ClusterDocument:
    """The configuration in which this one and another are in force: one with other quorums, and more replicas."""
    infos = tuple(ReplicaInfo(each, f"http://127.0.0.1:1/{each}") for each in more)
    replicas = (*document.replicas, *infos)
    all_of = len(replicas)
    eager = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (all_of, 1), "Deq/Empty": (all_of, 0)})
    return joint(document, replace(document, replicas=replicas, choices=(eager,)))


def lazy(replica: str, number: int = 0) -> Send:
    """A lazy message."""
    return Send(replica, (Commit(f"register/lazy{number}"),), 0, lazy=True)


def reply_to(replica: str, batch: Batch) -> BatchReply:
    """A reply of the right shape."""
    replies = [
        Committed(Status()) if isinstance(each, Commit) else Collected(Status()) for each in batch.requests
    ]
    return BatchReply(replica, "incarnation", ZERO, 0, tuple(replies))


class ManualClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.mono_s = 100.0
        self.suspended_s = 0.0
        """So long the machine was suspended: of that the wall clock tells alone."""

    def now(self) -> Now:
        """See Clock."""
        return Now(self.mono_s, int((self.mono_s + self.suspended_s) * 1e6))


class ScriptedMachine:
    """Runs `Read("register/r1,r2")` by asking r1 and r2; each operation ends when all it asked have answered."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        """How many operations each call began."""
        self.turns: list[Hashable] = []
        """Whose each operation was."""
        self.answers: list[tuple[str, tuple[int, ...], Answer]] = []
        self.cancelled: list[int] = []
        self.left: list[int] = []
        self.ticks: list[float] = []
        self.wake_at_s: float | None = None
        self.lazies: list[Send] = []
        self.lasts: list[Send] = []
        self.forwards: list[SendForwarded] = []
        self.served: list[tuple[int, ForwardedReply | Unanswered]] = []
        self.breaks = False
        self.name_bytes = 1
        """Of the object that it asks for: how long its sends are."""
        self.pacing = Pacing()
        self.started_over = 0
        self.documents: list[ClusterDocument] = []
        self._token = 0
        self._open: dict[int, set[int]] = {}

    def start_all(
        self,
        begun: Sequence[Operation],
        now: Now,
        deadline_s: float,
        turns: Sequence[Hashable] = (),
        asked: Now | None = None,
    ) -> tuple[list[int], Effects]:
        """See Machine."""
        numbers, sends = [], []
        for operation in begun:
            numbers.append(len(self._open) + 1)
            own = self._sends_of(operation)
            self._open[numbers[-1]] = {send.token for send in own}
            sends += own
        lazies, self.lazies = self.lazies, []
        forwards, self.forwards = self.forwards, []
        self.begun.append(len(begun))
        self.turns += turns
        return numbers, Effects((*lazies, *sends), (), self.wake_at_s, tuple(forwards))

    def _sends_of(self, operation: Operation) -> list[Send]:
        sends = []
        for replica in operation.object.removeprefix("register/").split(","):
            self._token += 1
            sends.append(Send(replica, (Collect("register/" + "x" * self.name_bytes),), self._token))
        return sends

    def deliver(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> Effects:
        """See Machine."""
        if self.breaks:
            raise AssertionError("an invariant broke")
        self.answers.append((replica, tuple(tokens), answer))
        for waited in self._open.values():
            waited.difference_update(tokens)
        return self._finished()

    def take_forwarded_reply(self, token: int, answer: ForwardedReply | Unanswered, now: Now) -> Effects:
        """See Machine."""
        self.served.append((token, answer))
        return Effects((), (), None)

    def tick(self, now: Now) -> Effects:
        """See Machine."""
        self.ticks.append(now.mono_s)
        self.wake_at_s = None
        return self._finished()

    def served_by(self, token: int) -> list[int]:
        """See Machine."""
        return [number for number, waited in self._open.items() if token in waited]

    def cancel(self, number: int, now: Now) -> Effects:
        """See Machine."""
        self.cancelled.append(number)
        self._open[number] = {-1}
        return Effects((), (), None)

    def leave(self, number: int, now: Now) -> Effects:
        """See Machine."""
        self.left.append(number)
        return Effects((), (), None)

    def last_sends(self) -> tuple[Send, ...]:
        """See Machine."""
        return tuple(self.lasts)

    def reconfigure(self, document: ClusterDocument, now: Now) -> Effects:
        """It sends nothing again."""
        del now
        self.documents.append(document)
        return Effects((), (), None)

    def start_over(self) -> None:
        """See Machine."""
        self.started_over += 1
        self._open = {number: {-1} for number in self._open}

    def _finished(self) -> Effects:
        done = [number for number, waited in self._open.items() if not waited]
        for number in done:
            self._open[number] = {-1}
        outcome = Done(None, "Read/Ok", frozenset())
        return Effects((), tuple(Finish(number, outcome) for number in done), self.wake_at_s)


Behaviour = Callable[[str, Batch], BatchReply | Unanswered]


class ScriptedTransport(Exchanging):
    """Answers at once, except replicas in `stuck` (which answer when set free) and in `failing`."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, tuple[Request, ...]]] = []
        self.hashes: list[str] = []
        """Of the documents that they name."""
        self.followed: list[ClusterDocument] = []
        self.failing: dict[str, Unanswered] = {}
        self.stuck: dict[str, asyncio.Event] = {}
        self.behaviour: Behaviour = reply_to
        self.in_flight_max = 0
        self.is_closed = False
        self._in_flight = 0

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """See Transport."""
        self.batches.append((replica, batch.requests))
        self.hashes.append(batch.cluster)
        self._in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self._in_flight)
        try:
            if replica in self.stuck:
                async with asyncio.timeout(timeout_s):
                    await self.stuck[replica].wait()
            return self.failing.get(replica) or self.behaviour(replica, batch)
        except TimeoutError:
            return Unanswered(f"{replica}: no answer in time")
        finally:
            self._in_flight -= 1

    def follow(self, document: ClusterDocument) -> None:
        """See Transport."""
        self.followed.append(document)

    async def aclose(self) -> None:
        """See Transport."""
        self.is_closed = True


def asking(*replicas: str) -> Read:
    """The operation that asks these replicas."""
    return Read("register/" + ",".join(replicas))
