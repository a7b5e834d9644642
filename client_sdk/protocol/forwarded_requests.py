"""The asks of one front end: which host is asked, whose ask is under way, and greetings beside the work. Pure.

Owns the tokens of asks and what their answers say of hosts. Must not know what the wishes mean (`quorate.client_sdk.protocol.decisions.forwarding`).
"""

from collections.abc import Callable
from typing import Final

from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import Ask, Served
from ...api_specs.wishes import WishOver
from ...timestamps.timestamp import Timestamp
from .coordinators import Hosts
from .core.rounds import Answered, Task
from .core.values import SendAsk, Unanswered

GREETING_S: Final = 0.5


class HostAsks:
    """The asks of a front end; `own` is the replica it runs in, if any. Without `may_ask` there are none."""

    def __init__(
        self,
        document: ClusterDocument,
        own: str | None,
        *,
        may_ask: bool,
        new_token: Callable[[], int],
        stamp: Callable[[], Timestamp],
    ) -> None:
        self.hosts: Final = Hosts(document, own)
        self.sends: Final[list[SendAsk]] = []
        """To be sent, and cleared by who sends them."""
        self._cluster: Final = document.hash
        self._may_ask: Final = may_ask
        self._new_token: Final = new_token
        self._stamp: Final = stamp
        self._under_way: Final[dict[int, tuple[Task | None, str]]] = {}
        """Whose an ask is (nobody's: a greeting), and which replica was asked."""

    def choose(self, name: str, now_s: float) -> str | None:
        """The replica whose front end should decide on the object, where several want to; None: this one."""
        if not self._may_ask:
            return None
        for replica in self.hosts.to_greet(name, now_s):
            self._send(None, replica, name, "", (), 0.0, GREETING_S)
        return self.hosts.host_of(name, now_s)

    def ask(
        self,
        task: Task,
        host: str,
        name: str,
        wishes: tuple[WishOver, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """Ask a host that was just chosen; its answer comes to the task as an Answered with the returned token."""
        incarnation = self.hosts.incarnation_of(host, task.now.mono_s)
        assert incarnation is not None, "only one that is known to be live is chosen"
        return self._send(task, host, name, incarnation, wishes, deadline_s, timeout_s)

    def _send(
        self,
        task: Task | None,
        host: str,
        name: str,
        incarnation: str,
        wishes: tuple[WishOver, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        token = self._new_token()
        ask = Ask(self._cluster, self._stamp(), name, incarnation, wishes, deadline_s)
        self._under_way[token] = (task, host)
        self.sends.append(SendAsk(host, ask, token, timeout_s))
        return token

    def take(self, token: int, answer: Served | Unanswered, now_s: float) -> tuple[Task, Answered] | None:
        """What came of one ask, and who waits for it; None when nobody does."""
        if token not in self._under_way:
            return None
        task, host = self._under_way.pop(token)
        if isinstance(answer, Served) and answer.replica != host:
            answer = Unanswered(f"its URL reaches replica {answer.replica}: correct the endpoints")
        if isinstance(answer, Served):
            self.hosts.heard(host, answer.incarnation, now_s)
        return None if task is None else (task, Answered(host, token, answer))

    def task_of(self, token: int) -> Task:
        """Whose an ask under way is that has wishes."""
        task, _ = self._under_way[token]
        assert task is not None, "nobody waits for a greeting, and it has no wishes"
        return task

    def forget(self) -> None:
        """Forget all that is under way."""
        self._under_way.clear()
        self.sends.clear()
