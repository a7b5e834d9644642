"""What may go wrong in a simulated world: every fault is a named option, and none is there unless it is named.

Owns the names. It must not know how a world brings a fault about (`quorate.simulation.world.plan`, `quorate.simulation.world.network`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace


class Faults(Struct, frozen=True):
    """Everything that may go wrong. Chances are per packet (0 to 1), counts per run; the default is nothing."""

    loss: float = 0.0
    duplication: float = 0.0
    tail: float = 0.0
    """Chance that a packet's delay comes from the heavy tail, up to `tail_us_max`, instead of the usual 0.2 to 1.5 ms."""
    tail_us_max: int = 300_000
    slow_links: int = 0
    """Stretches in which all packets between one pair take 30 times as long."""
    slow_throughout: int = 0
    """Pairs whose packets take 30 times as long from the beginning to the end."""
    newest_first: int = 0
    """Pairs between which, from the beginning to the end, of the packets under way the one sent last arrives first."""
    cuts: int = 0
    """Stretches in which packets of one direction of one pair are lost."""
    partitions: int = 0
    """Stretches in which the nodes are split in two."""
    apart: int = 0
    """Stretches, one after another, in each of which some front ends are each apart from one replica."""
    crashes: int = 0
    """Replicas that crash, lose what was not committed, and start again; with them the front ends embedded there."""
    slow_replicas: int = 0
    """Stretches in which a replica takes up to 200 ms for every batch."""
    freezes: int = 0
    """Replicas that are stopped, with all that they were doing, and go on later; their clocks have gone on."""
    client_crashes: int = 0
    """Front ends that vanish for ever."""
    client_crash_at: int = 0
    """The first front end vanishes when it is about to send its so-manieth batch; 0: it does not."""
    client_freezes: int = 0
    """Front ends that are stopped, and go on later."""
    cancels: float = 0.0
    """Chance per operation that its caller gives up early."""
    lazy_loss: float = 0.0
    joining: float = 0.0
    """Chance that a send waits a little to share a batch with others."""
    commit_us_max: int = 0
    """How long a replica may gather requests before it commits; a crash before that loses them."""
    replica_skew_us: int = 0
    client_skew_us: int = 0
    clock_steps: int = 0
    """Times at which some client's wall clock jumps, by up to twice the skew."""
    drift_ppm: int = 0
    """How far a front end's monotonic clock runs fast or slow, at most. A replica's wall clock drifts by as much, until it
    meets the skew."""
    leaps: int = 0
    """Times at which replicas' clocks jump far away or back, all together or one alone, by up to `leap_us_max`."""
    leap_us_max: int = 0
    replica_clock_steps: int = 0
    """Times at which some replica's wall clock jumps, to another error within the skew."""

    def with_options(self, options: Sequence[str]) -> "Faults":
        """These faults, with some named otherwise, as `loss=0.1`; ValueError names what is wrong."""
        given: dict[str, float] = {}
        for option in options:
            name, _, value = option.partition("=")
            if name not in self.__struct_fields__:
                raise ValueError(f"no fault is named {name!r}: use {', '.join(self.__struct_fields__)}")
            kind = type(getattr(NO_FAULTS, name))
            given[name] = kind(float(value))
        return replace(self, **given)


NO_FAULTS: Final = Faults()
