"""Small plans for the tests, as text, from the parts that a test is about."""

from typing import Final

CLUSTER: Final = '[cluster]\nracks = { a = ["r1", "r2"], b = ["r3"] }\n'
WORKLOAD: Final = """
[[workloads]]
type = "queue"
rates = { Enq = 5, Deq = 5 }
[[workloads.choices]]
name = "majorities"
"""


def plan_text(
    *faults: str,
    duration: str = "1d",
    scale: float = 864,
    seed: int = 1,
    cluster: str = CLUSTER,
    workload: str = WORKLOAD,
) -> str:
    """A plan of three replicas in two racks, with these tables of faults."""
    time = f'[time]\nduration = "{duration}"\nscale = {scale}\n'
    return "\n".join([f"seed = {seed}", time, cluster, *faults, workload])
