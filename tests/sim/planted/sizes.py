"""Mistakes of the front end in looks at a whole queue or dictionary."""

from collections.abc import Generator
from typing import Any

from quorate.adts.types import queue
from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.client_sdk.protocol.core.values import Done, QueueInfo, QueueSize
from quorate.client_sdk.protocol.operations import observe
from quorate.client_sdk.protocol.operations.context import Machine, OutcomeSteps
from tests.sim.planted.fronts import instead
from tests.sim.planted.plant import Planting, patched


def size_at_first_look() -> Planting:
    """Size counts what one look at an initial quorum shows."""

    def size(operation: QueueSize, task: Task, machine: Machine) -> OutcomeSteps:
        cache = machine.cache_of(operation.object)
        cache.pins += 1
        needed = machine.choice_of(operation.object).initial_of("Size")
        answered = yield from observe.collect(operation.object, task, machine, needed)
        cache.pins -= 1
        waiting = queue.view(cache.summary, cache.by_id())
        return Done(QueueInfo(len(waiting), cache.summary.horizon), "Size/Ok", answered)

    return instead(QueueSize, size)


def moving_keys_of_several_moments() -> Planting:
    """A whole read takes the keys that keep changing as each was when it was read by itself, one after the other."""

    def read(names: frozenset[str], task: Task, machine: Machine) -> Generator[float, Event, Any]:
        versions = {}
        for name in sorted(names):
            versions[name], _ = yield from observe._read_settled(name, "Get", task, machine)
        return versions

    return patched(observe, _at_one_moment=read, LOOKS_FREE=1)
