"""Who changes the configuration of a world's cluster, one step after another, and may vanish in between; and who switches its standing rules.

Owns how what the steps want is done, over the same network. It must not know the steps (`quorate.client_sdk.protocol.reconfiguration`), nor which
switches are due (`quorate.client_sdk.protocol.standing_rules`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...adts.types.catalogue import CONFIGURATION
from ...api_specs.cluster import BadCluster, ClusterDocument
from ...client_sdk.protocol.configurations import keeps_quorums, settled
from ...client_sdk.protocol.core.values import Carry, Outcome, Read
from ...client_sdk.protocol.reconfiguration import (
    Ask,
    CarryAll,
    Look,
    Looked,
    Perform,
    Steps,
    Tell,
    Todo,
    Wait,
    is_like,
)
from ...client_sdk.protocol.standing_rules import Move, StandingRules, states_of

if TYPE_CHECKING:
    from .nodes import FrontNode, ReplicaNode
    from .world import World

PATIENCE_US: Final = 100_000
"""How long replicas have to answer."""
LOOK_EVERY_US: Final = 25_000
HASTE: Final = 20
"""How much faster than the world the clock of who looks runs: so a condition must hold for 0.1 seconds."""
MISTAKEN: Final = 0.1
"""How often who looks takes another member for down, or the right ones again."""
MISTAKES_MAX: Final = 20
"""Afterwards he is right: on a network that is slow enough, operations and carries would begin again for ever."""


class Operator:
    """One who changes it, from a front end of his own. He vanishes after so many steps, if ever; `done` is told when he has ended, or vanished."""

    def __init__(
        self, world: "World", front: "FrontNode", steps: Steps, steps_max: float, done: Callable[[], None]
    ) -> None:
        self._world = world
        self._front = front
        self._steps = steps
        self._left = steps_max
        self._done = done
        self._asked = 0
        """How often members were asked; one more once their answers are taken."""

    def give_up(self) -> None:
        """Vanish now, whatever is under way."""
        self._world.note("operators vanished", 1)
        self._world.crash_front(self._front)
        self._done()

    def go_on(self, answer: Any = None) -> None:
        """Do what comes next, unless he has vanished."""
        if not self._front.is_alive:
            return
        self._world.trace(self._front.name, lambda: f"operator hears: {answer}")
        try:
            todo = self._steps.send(answer)
        except StopIteration:
            self._world.note("changes of configuration", 1)
            self._done()
            return
        except BadCluster:
            # Others have brought it where this cannot follow any more: a member that it wants to keep has left.
            self._world.note("changes refused", 1)
            self._done()
            return
        self._left -= 1
        if self._left < 0:
            self.give_up()
            return
        self._world.trace(
            self._front.name, lambda: f"operator: {type(todo).__name__} {getattr(todo, 'operation', '')}"
        )
        self._do(todo)

    def _do(self, todo: Todo) -> None:
        match todo:
            case Look():
                reading, deadline_s = Read(CONFIGURATION), self._world.document.limits.deadline_s_max
                self._front.start(reading, deadline_s, self._looked)
            case Perform(operation=operation):
                self._front.start(operation, self._world.document.limits.deadline_s_max, self.go_on)
            case CarryAll(operations=operations):
                self._carry_all(operations)
            case Tell(document=document, to=to):
                if to is not None and to.former is not None and is_like(document, settled(to)):
                    self._note_learners(to)
                self._front.follow(document)
                self._ask_all(to or document, lambda node: node.follow(document))
            case Ask(document=document):
                self._ask_all(document, lambda node: node.holding())
            case Wait(seconds=seconds):
                self._world.later(int(seconds * 1e6 * (1 + self._world.chance() / 2)), self.go_on)

    def _note_learners(self, ended: ClusterDocument) -> None:
        """A change has come to its end, of which members without votes may be all."""
        assert ended.former is not None, "a change has two configurations"
        if keeps_quorums(ended):
            came, left = (
                ended.own_votes.keys() - ended.former.votes,
                ended.former.votes.keys() - ended.own_votes,
            )
            self._world.note("learners came", len(came))
            self._world.note("learners left", len(left))

    def _looked(self, outcome: Outcome) -> None:
        self.go_on(Looked(outcome, self._front.machine.document))

    def _carry_all(self, operations: Sequence[Carry]) -> None:
        """All at once; the answer is what has come of each, in order."""
        outcomes: dict[int, Outcome] = {}

        def end(place: int, outcome: Outcome) -> None:
            outcomes[place] = outcome
            if len(outcomes) == len(operations):
                self.go_on([outcomes[each] for each in range(len(operations))])

        for place, operation in enumerate(operations):
            self._front.start(operation, self._world.document.limits.deadline_s_max, partial(end, place))

    def _ask_all(self, document: ClusterDocument, ask: "Callable[[ReplicaNode], Any]") -> None:
        """Ask each member, there and back; the answer is what has come when all have answered, or their time is over."""
        answers: dict[str, Any] = {}
        number = self._asked = self._asked + 1

        def end() -> None:
            if self._asked == number:
                self._asked += 1
                self.go_on(answers)

        def take(replica: str, answer: Any) -> None:
            answers[replica] = answer
            if len(answers) == len(document.votes):
                end()

        for name in document.votes:
            self._ask(self._world.replicas[name], ask, take)
        self._world.later(PATIENCE_US, end)

    def _ask(
        self,
        node: "ReplicaNode",
        ask: "Callable[[ReplicaNode], Any]",
        take: Callable[[str, Any], None],
    ) -> None:
        world, address = self._world, self._front.address

        def arrived() -> None:
            if not node.is_up or node.is_stopped:
                return
            answer, delay_us = ask(node), world.network.delay_us(node.id, address)
            if delay_us is not None:
                world.later(delay_us, take, node.id, answer)

        delay_us = world.network.delay_us(address, node.id)
        if delay_us is not None:
            world.later(delay_us, arrived)


class Switcher:
    """Who switches standing rules in the name of a member, while that is up. Until all is healed he may be wrong about who else is, some times."""

    def __init__(self, world: "World", own: str) -> None:
        self._world = world
        self._own = own
        self._rules = StandingRules(own)
        self._mistaken: str | None = None
        self._mistakes = 0
        self._attempt: tuple[Move, Operator] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a switch is under way, as far as he knows."""
        return self._attempt is not None

    def look(self) -> None:
        """Once, and from then on."""
        world, node = self._world, self._world.replicas[self._own]
        world.later(LOOK_EVERY_US, self.look)
        if not (node.is_up and node.is_member) or node.is_stopped:
            self._give_up()
            return
        at = node.replica.document
        found = self._rules.look(at, self._live(at), world.now_us * HASTE / 1e6)
        if self._attempt is None:
            if isinstance(found, Move) and found.is_ours:
                self._begin(found)
            return
        move, _ = self._attempt
        if found.goal != move.goal if isinstance(found, Move) else states_of(at) != move.states:
            self._give_up()

    def _live(self, at: ClusterDocument) -> set[str]:
        nodes = [self._world.replicas[name] for name in at.votes]
        if self._world.is_healed or self._mistakes == MISTAKES_MAX:
            self._mistaken = None
        elif self._world.chance() < MISTAKEN:
            self._mistakes += 1
            others = [*(name for name in at.votes if name != self._own), None]
            self._mistaken = others[int(self._world.chance() * len(others))]
        up = {node.id for node in nodes if node.is_up and not node.is_stopped}
        return up - {self._mistaken or ""}

    def _begin(self, move: Move) -> None:
        world = self._world
        world.trace(self._own, lambda: f"switches: {move.reason}")
        world.note("switches taken back" if move.takes_back else "switches", 1)
        operator = Operator(world, world.new_front(), move.steps(), float("inf"), self._ended)
        self._attempt = (move, operator)
        operator.go_on()

    def _ended(self) -> None:
        self._attempt = None

    def _give_up(self) -> None:
        if self._attempt is not None:
            self._attempt[1].give_up()
