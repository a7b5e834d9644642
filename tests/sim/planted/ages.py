"""Mistakes of replicas with elapsed time: what they call old of a summary (DESIGN section 2, "How long things are remembered")."""

from quorate.adts.log import Summary
from quorate.api_specs.messages import NOT_AGED, Aged, Batch, BatchReply
from quorate.replica.protocol.ages import Ages
from quorate.simulation.memory.replica import InMemoryReplica
from tests.sim.planted.plant import Planting, patched


def measure_ages_by_the_wall_clock() -> Planting:
    """A replica measures ages by its wall clock, which may step."""
    right = InMemoryReplica.handle

    def handle(self: InMemoryReplica, batch: Batch, now_us: int, mono_s: float) -> BatchReply:
        del mono_s
        return right(self, batch, now_us, now_us / 1e6)

    return patched(InMemoryReplica, handle=handle)


def call_old_what_was_found() -> Planting:
    """A replica calls old whatever it meets first of an object, as after a restart."""
    right = Ages.meet

    def meet(self: Ages, name: str, summary: Summary, mono_s: float) -> None:
        is_first = name not in self._met
        right(self, name, summary, mono_s)
        if is_first and name in self._met:
            self._met[name][0] = float("-inf"), self._met[name][0][1]

    return patched(Ages, meet=meet)


def call_old_what_is_latest() -> Planting:
    """A replica that has held something for the retry window calls old what it holds now."""
    right = Ages.aged

    def aged(self: Ages, name: str, mono_s: float) -> Aged:
        return NOT_AGED if right(self, name, mono_s) == NOT_AGED else self._met[name][-1][1]

    return patched(Ages, aged=aged)
