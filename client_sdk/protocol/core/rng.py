"""Random numbers from a seed. Pure: so a seed replays a run."""

from typing import Final

_MASK: Final = (1 << 64) - 1


class Rng:
    """SplitMix64 (Steele et al. 2014)."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def next(self) -> float:
        """A number in [0, 1)."""
        self._seed = (self._seed + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((self._seed ^ (self._seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return float((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)
