"""The steps of a plain class from the states near its first one, for two processes to agree on. Pure, but for the user's code.

Owns the order of the steps, and the comparison. A step that another process takes otherwise shows that what the class answers
does not follow from state and arguments alone.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .legality import invocations_of
from .plain_class import PlainClass

STEPS_MAX: Final = 4000
"""Some tenths of a second."""


class Step(NamedTuple):
    """One step, as texts: the state before it, the call, how it ended, and the state after it. The first one makes the object."""

    before: str
    call: str
    response: str
    after: str


class Difference(NamedTuple):
    """A step that was taken in two ways, and the calls that lead to it."""

    path: tuple[str, ...]
    here: Step
    there: Step

    def __str__(self) -> str:
        after = f", after {', '.join(self.path)}" if self.path else ""
        if self.here.response != self.there.response:
            return f"{self.here.call}{after}: gave {self.here.response} in one process, {self.there.response} in another"
        return f"{self.here.call}{after}: led to {self.here.after} in one process, to {self.there.after} in another"


def walk(found: PlainClass, *, is_other: bool = False, steps_max: int = STEPS_MAX) -> Iterator[Step]:
    """The steps from each state that is met, breadth first. The other walk goes backwards through the calls, and takes each step twice:
    what is kept outside of the state has changed by then.

    Raises BadClass as `step` does.
    """
    calls = invocations_of(found)
    waiting = [str(found.initial())]
    states = set(waiting)
    yield Step("", f"{found.name}()", "", waiting[0])
    steps = 1
    for state in waiting:
        for call in reversed(calls) if is_other else calls:
            if steps == steps_max:
                return
            steps += 1
            if is_other:
                found.step(state, call)
            after, response = found.step(state, call)
            yield Step(state, str(call), str(response), after)
            if after not in states:
                states.add(after)
                waiting.append(after)


def difference(here: Sequence[Step], there: Sequence[Step]) -> Difference | None:
    """The first of the steps here that is taken otherwise there; None where all that both took are the same."""
    others = {(step.before, step.call): step for step in there}
    paths: dict[str, tuple[str, ...]] = {"": ()}
    for step in here:
        path = paths[step.before]
        other = others.get((step.before, step.call), step)
        if other != step:
            return Difference(path, step, other)
        paths.setdefault(step.after, (*path, step.call) if step.before else ())
    return None
