"""The lecture's execution, on real replicas: five operations, each by a front end that reaches two replicas of three.

Owns the steps and the answers they must give. Each front end holds an address at which nobody listens for the replica
that its quorum leaves out, as if the network were split there.
"""

from typing import Final

from msgspec import Struct

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import connect_async
from ..values import compact

QUEUE: Final = "lecture"
CLASSES: Final[dict[str, tuple[int, int]]] = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2), "Deq/Empty": (2, 0)}


class Step(Struct, frozen=True):
    """An operation, the replica that its front end cannot reach, and what it must answer."""

    left_out: str
    enqueued: str | None = None
    dequeued: str | None = None


STEPS: Final = (
    Step("r3", enqueued="x"),
    Step("r1", dequeued="x"),
    Step("r3", enqueued="y"),
    Step("r2", enqueued="z"),
    Step("r2", dequeued="y"),
)


class Told(Struct, frozen=True):
    """A step that was run: the sentence that tells it, and what was wrong with its answer, if anything."""

    sentence: str
    problem: str = ""


async def run_step(document: ClusterDocument, step: Step, dead_url: str) -> Told:
    """Run one step; `dead_url` is an address at which nobody listens."""
    reached = " and ".join(id for id in document.urls if id != step.left_out)
    async with connect_async(document, endpoints={step.left_out: dead_url}) as client:
        queue = client.queue(QUEUE)
        if step.enqueued is not None:
            await queue.enqueue(step.enqueued)
            return Told(f"Enq({compact(step.enqueued)}) at {reached} answers Ok()")
        item = await queue.dequeue()
    told = f"Deq()    at {reached} answers Ok({compact(item)})"
    return Told(told, "" if item == step.dequeued else f"it must answer Ok({compact(step.dequeued)})")
