"""Mistakes of the front end in counting what waits in a queue."""

from quorate.adts import queue
from quorate.client_sdk import observe
from quorate.client_sdk.asking import Machine, OutcomeSteps
from quorate.client_sdk.effects import Done, QueueInfo, QueueSize
from quorate.client_sdk.tasks import Task
from tests.sim.planted.fronts import instead
from tests.sim.planted.plant import Planting


def size_at_first_look() -> Planting:
    """Size counts what one look at an initial quorum shows."""

    def size(operation: QueueSize, task: Task, machine: Machine) -> OutcomeSteps:
        mirror = machine.mirror_of(operation.object)
        mirror.pins += 1
        needed = machine.choice_of(operation.object).initial_of("Size")
        answered = yield from observe.collect(operation.object, task, machine, needed)
        mirror.pins -= 1
        waiting = queue.view(mirror.summary, mirror.by_id())
        return Done(QueueInfo(len(waiting), mirror.summary.horizon), "Size/Ok", answered)

    return instead(QueueSize, size)
