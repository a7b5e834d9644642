"""What simulated clusters came to, in words."""

from collections.abc import Iterator

from .simulated import SIMULATED_S_MAX, Broken, Simulated


def words_of(came: Simulated, name: str, seeds: int) -> Iterator[str]:
    """The lines that tell what so many clusters of the class `name` came to."""
    if came.broken is not None:
        yield from _of_broken(came.broken, name)
        return
    if came.clusters:
        yield (
            f"Simulated: {came.clusters:,} clusters, {came.calls:,} calls, {came.faults:,} faults: all linearizable."
        )
    if came.given_up:
        yield f"Of {came.given_up:,} of them this is not known, for too many calls overlap."
    if came.clusters < seeds:
        yield f"Not simulated: {seeds - came.clusters:,} clusters, for {SIMULATED_S_MAX:.0f} s were over."


def _of_broken(broken: Broken, name: str) -> Iterator[str]:
    if broken.promise:
        yield f"Simulated: the cluster of seed {broken.seed} broke a promise: {broken.promise}"
        return
    yield f"Simulated: in the cluster of seed {broken.seed}, {name}'s calls are not linearizable."
    yield (
        f"Of its {broken.calls} calls these show it:"
        if broken.drawing
        else "The few calls that show it were not found."
    )
    yield ""
    for line in broken.drawing:
        yield f"  {line}".rstrip()
    if broken.drawing:
        yield ""
    yield (
        "Let what an operation does follow from the state and its arguments alone: what is kept in the class or in its module is another one "
        f"in each process. `--first {broken.seed} --seeds 1` runs this cluster again."
    )
