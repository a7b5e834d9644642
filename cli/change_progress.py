"""How far a change of the configuration has come, in words, as its steps are done.

Owns what is said of each step, what a change waits for, and whether it has begun. What the steps are, `quorate.client_sdk.protocol.reconfiguration` says.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from typing import Any, Final, Self

import msgspec
from rich.console import Console

from ..adts.log import Value
from ..api_specs.cluster import ClusterDocument, from_json
from ..client_sdk.protocol.configurations import NOBODY, is_over
from ..client_sdk.protocol.core.values import Carry, CompareAndSet, Done, Failed, Outcome
from ..client_sdk.protocol.reconfiguration import (
    Ask,
    CarryAll,
    Holding,
    Look,
    Looked,
    Perform,
    Steps,
    Tell,
    Todo,
    Wait,
    Wanted,
    can_begin,
    followed,
    is_like,
    is_long,
    to_begin,
)
from .output import say
from .progress import Reached, rate_bar

TOLD_S: Final = 2.0
"""Between two lines that say what is waited for."""


class Progress:
    """Of a change to what is wanted without those that are declared dead, or of one that is taken back. `out` shows how many objects are copied, if any does; `rate` is how many may be in a
    second, and `deadline_s` when the command stops."""

    def __init__(
        self,
        want: Wanted | None,
        *,
        dead: AbstractSet[str] = NOBODY,
        out: Console | None = None,
        rate: int | None = None,
        deadline_s: float = float("inf"),
    ) -> None:
        self._want: Final = want
        self._dead: Final = dead
        self._out: Final = out
        self._rate: Final = rate
        self._deadline_s: Final = deadline_s
        self.waits = "no quorum answers"
        """What it waits for."""
        self.behind: list[str] = []
        """Replicas that did not go on to the configuration that was told last."""
        self.is_joint = False
        """Whether both are in force, as was seen last."""
        self.is_choosing = False
        """Whether another configuration was given to the cluster, and it is not known whether it was chosen."""
        self._held: Mapping[str, Holding] = {}
        """What members of the wanted configuration answered last, before it begins."""
        self._said_s, self._said = time.monotonic(), ""
        self._epoch = 0
        self._objects = self._done = 0
        self._keys = 0
        self._bar = ExitStack()
        self._reached: Reached | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def follow(self, steps: Steps) -> Steps:
        """The same steps, of which each is told before it is done and afterwards."""
        return followed(steps, self.hear, self._begin)

    def _begin(self, todo: Todo) -> None:
        self.is_choosing |= isinstance(todo, Perform)

    def hear(self, todo: Todo, told: Any) -> None:
        """A step was done, and this came of it. What it waits for is said, where that is long, or another thing than before."""
        self._hear(todo, told)
        if isinstance(todo, Wait) and self.waits != self._said and time.monotonic() > self._said_s + TOLD_S:
            self._said_s, self._said = time.monotonic(), self.waits
            say(f"Waiting: {self.waits}.")

    def _hear(self, todo: Todo, told: Any) -> None:
        match todo:
            case Look():
                self._looked(told)
            case Perform(operation=CompareAndSet(new=text)):
                self._chose(text, told)
            case Tell(document=document, to=None):
                self._told(document, told)
            case Tell(document=document, to=to) if to == document:
                self._asked(document, told)
            case Ask(document=document) if document.former is None:
                self._held = told
            case Ask(document=both) if silent := _silent(both, told):
                self.waits = f"{', '.join(silent)} did not answer{_hint(silent, both)}"
            case Ask(names=True):
                self._found(len({name for each in told.values() for name in each.objects}))
            case Ask():
                self._remembered(max(each.keys for each in told.values()))
            case CarryAll(operations=operations):
                self._carried(operations, told)

    def _looked(self, told: Looked) -> None:
        if isinstance(told.outcome, Failed):
            self.waits = f"the cluster does not tell its configuration: {told.outcome.detail}"
        else:
            self.is_choosing = False

    def _chose(self, text: Value | None, outcome: Outcome) -> None:
        if isinstance(outcome, Done):
            self.is_choosing = False
            if outcome.result and text is not None:
                self.is_joint = from_json(msgspec.json.decode(text)).former is not None
        else:
            self.is_choosing = not outcome.definite
            self.waits = f"the cluster does not note its next configuration: {outcome.detail}"

    def _told(self, document: ClusterDocument, told: dict[str, int]) -> None:
        self.is_joint = document.former is not None
        self.behind = [name for name in document.votes if told.get(name, -1) < document.number]
        if self.behind:
            hint = _hint(self.behind, document) if self.is_joint else ""
            self.waits = f"{', '.join(self.behind)} did not go on to configuration {document.number}{hint}"
        if self.is_joint and document.number > self._epoch:
            self._epoch = document.number
            say(f"Joint configuration {document.number}: each quorum is one of the old and one of the new.")
            if self._want is not None and not is_like(document, self._want(document)):
                say("It is another operator's change, which is finished first.")

    def _asked(self, at: ClusterDocument, told: dict[str, int]) -> None:
        assert self._want is not None, "nobody is asked for a change that is taken back"
        self.is_joint = at.former is not None
        wanted = self._want(at)
        both = to_begin(at, wanted, self._dead)
        assert both is not None, "nobody is asked before it may begin"
        lacking = list(_lacking(both, at, wanted, self._held, told))
        self.waits = "; ".join(lacking) or "its members are not in one configuration yet"

    def _found(self, objects: int) -> None:
        self._objects, self._done = objects, 0
        words = f"{objects} object{'s' * (objects != 1)} to copy."
        takes_s = 0.0 if self._rate is None else objects / self._rate
        if takes_s >= 1:
            words += f" At {self._rate} a second that takes {takes_s:.0f} s."
            if takes_s > self._deadline_s:
                words += (
                    " That is longer than --deadline: whoever repeats the command copies all of them anew."
                )
        say(words)

    def _carried(self, operations: Sequence[Carry], outcomes: Sequence[Outcome]) -> None:
        left = [
            f"{each.object} is not copied yet: {outcome.detail}"
            for each, outcome in zip(operations, outcomes, strict=True)
            if isinstance(outcome, Failed)
        ]
        self._done += len(operations) - len(left) - sum(map(is_long, outcomes))
        self.waits = f"{self._done} of {self._objects} objects are copied, and whoever repeats the command copies all anew: give it a longer --deadline"
        if left:
            self.waits = left[0]
        if self._out is not None and self._reached is None:
            self._reached = self._bar.enter_context(rate_bar(self._out, "objects copied", self._objects))
        if self._reached is not None:
            self._reached(self._done)
        if self._done >= self._objects:
            self._bar.close()
            self._reached = None

    def _remembered(self, keys: int) -> None:
        self.waits = f"{keys} old idempotency keys have not expired yet"
        if keys and not self._keys:
            self._keys = keys
            say(
                f"Waiting until old idempotency keys expire ({keys} now): `retry_window_s` and `deadline_s_max`, about a minute by default."
            )


def _silent(both: ClusterDocument, told: Mapping[str, Holding]) -> list[str]:
    """Members of the old configuration that do not say what they hold under both; empty where enough of them do."""
    assert both.former is not None, "nothing is copied before"
    there = {name for name, each in told.items() if each.epoch == both.number}
    return [] if is_over(both, there) else [name for name in both.former.votes if name not in there]


def _lacking(
    both: ClusterDocument,
    at: ClusterDocument,
    wanted: ClusterDocument,
    held: Mapping[str, Holding],
    members: Mapping[str, int],
) -> Iterator[str]:
    """Why a change does not begin, by what members of the wanted configuration answered, and who of those in force did."""
    silent = missing(both, held.keys() | members.keys())
    if silent:
        yield f"{', '.join(silent)} did not answer{_hint(silent, both)}"
    strangers = [name for name, each in held.items() if each.epoch == at.number and each.cluster != at.hash]
    if strangers:
        yield f"{', '.join(strangers)}: other limits, clock settings or types, or of another cluster (give this one's file)"
    for name, each in held.items():
        others = [other for other in each.awaits if other in wanted.votes]
        if name in strangers or name in at.votes:
            continue
        if others:
            yield (
                f"{name} has not been heard by {', '.join(others)}, so that it could not vote (its log says why; start those that are down, or "
                "replace them)"
            )
        elif each.epoch == at.number and not each.is_joining(at, wanted, name):
            yield f"{name} holds another store than before, or one that has voted: start a new one with another id"


def missing(both: ClusterDocument, answering: AbstractSet[str]) -> list[str]:
    """The members that do not answer, and without whom the change does not begin. Those that are declared dead are not waited for."""
    assert both.former is not None, "a change has two configurations"
    silent = [name for name in both.votes if name not in answering and name not in both.declared_dead]
    is_enough = can_begin(both, answering)
    return [name for name in silent if name not in both.former.votes] if is_enough else silent


def _hint(silent: Collection[str], both: ClusterDocument) -> str:
    """What may be done about members of before that do not answer."""
    assert both.former is not None, "a change has two configurations"
    are_there = not both.former.votes.keys().isdisjoint(silent)
    return (
        " (one that is off for good can be removed, or replaced, with --declare-dead ID)" if are_there else ""
    )
