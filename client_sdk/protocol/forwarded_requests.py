"""The forwarded requests of one front end: which coordinator is asked, whose request is under way, and greetings beside the work. Pure.

Owns the tokens of forwarded requests and what their answers say of coordinators. Must not know what the commands mean (`quorate.client_sdk.protocol.decisions.forwarding`).
"""

from collections.abc import Callable
from typing import Final

from ...api_specs.cluster import ClusterDocument
from ...api_specs.commands import ForwardableCommand
from ...api_specs.messages import ForwardedReply, ForwardedRequest
from ...timestamps.timestamp import Timestamp
from .coordinators import Coordinators
from .core.rounds import Answered, Task
from .core.values import SendForwarded, Unanswered

GREETING_S: Final = 0.5


class ForwardedRequests:
    """The forwarded requests of a front end; `own` is the replica it runs in, if any. Without `may_forward` there are none."""

    def __init__(
        self,
        document: ClusterDocument,
        own: str | None,
        *,
        may_forward: bool,
        new_token: Callable[[], int],
        stamp: Callable[[], Timestamp],
    ) -> None:
        self.coordinators: Final = Coordinators(document, own)
        self.sends: Final[list[SendForwarded]] = []
        """To be sent, and cleared by who sends them."""
        self._cluster = document.hash
        self._may_forward: Final = may_forward
        self._new_token: Final = new_token
        self._stamp: Final = stamp
        self._under_way: Final[dict[int, tuple[Task | None, str]]] = {}
        """Whose a forwarded request is (nobody's: a greeting), and which replica was asked."""

    def follow(self, document: ClusterDocument) -> None:
        """The cluster has this configuration from now on."""
        self._cluster = document.hash
        self.coordinators.follow(document)

    def choose(self, name: str, now_s: float) -> str | None:
        """The replica whose front end should decide on the object, where several want to; None: this one."""
        if not self._may_forward:
            return None
        for replica in self.coordinators.to_greet(name, now_s):
            self._send(None, replica, name, "", (), 0.0, GREETING_S)
        return self.coordinators.coordinator_of(name, now_s)

    def forward(
        self,
        task: Task,
        coordinator: str,
        name: str,
        commands: tuple[ForwardableCommand, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """Ask a coordinator that was just chosen; its answer comes to the task as an Answered with the returned token."""
        incarnation = self.coordinators.incarnation_of(coordinator, task.now.mono_s)
        assert incarnation is not None, "only one that is known to be live is chosen"
        return self._send(task, coordinator, name, incarnation, commands, deadline_s, timeout_s)

    def _send(
        self,
        task: Task | None,
        coordinator: str,
        name: str,
        incarnation: str,
        commands: tuple[ForwardableCommand, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        token = self._new_token()
        request = ForwardedRequest(self._cluster, self._stamp(), name, incarnation, commands, deadline_s)
        self._under_way[token] = (task, coordinator)
        self.sends.append(SendForwarded(coordinator, request, token, timeout_s))
        return token

    def take(
        self, token: int, answer: ForwardedReply | Unanswered, now_s: float
    ) -> tuple[Task, Answered] | None:
        """What came of one forwarded request, and who waits for it; None when nobody does."""
        if token not in self._under_way:
            return None
        task, coordinator = self._under_way.pop(token)
        if isinstance(answer, ForwardedReply) and answer.replica != coordinator:
            answer = Unanswered(f"its URL reaches replica {answer.replica}: correct the endpoints")
        if isinstance(answer, ForwardedReply):
            self.coordinators.heard(coordinator, answer.incarnation, now_s)
        return None if task is None else (task, Answered(coordinator, token, answer))

    def task_of(self, token: int) -> Task:
        """Whose a forwarded request under way is that has commands."""
        task, _ = self._under_way[token]
        assert task is not None, "nobody waits for a greeting, and it has no commands"
        return task

    def forget(self) -> None:
        """Forget all that is under way."""
        self._under_way.clear()
        self.sends.clear()
