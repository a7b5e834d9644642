"""Mistakes of catching up: what is installed, and what is forgotten of how far it came."""

from collections.abc import Iterable

from msgspec.structs import replace

from quorate.adts.log import Entry
from quorate.api_specs.messages import Changed, Changes, Row
from quorate.replica.protocol import catch_up
from quorate.replica.protocol.catch_up import Lack, Progress
from quorate.replica.protocol.log import Log, ObjectState
from quorate.timestamps.timestamp import ZERO, Timestamp
from tests.sim.planted.plant import Planting, patched


def install_unmarked() -> Planting:
    """A replica that catches up installs entries below its fence that are not marked complete."""
    right = catch_up._below_fence

    def below_fence(name: str, rows: Iterable[Row], log: Log) -> tuple[Entry, ...]:
        return right(name, [replace(row, complete=True) for row in rows], log)

    return patched(catch_up, _below_fence=below_fence)


def install_nothing_below() -> Planting:
    """A replica that catches up installs nothing below its fence, marked complete or not."""

    return patched(catch_up, _below_fence=lambda *_: ())


def install_history() -> Planting:
    """A replica that catches up installs entries below its committed horizon."""

    def least(state: ObjectState) -> Timestamp:
        del state
        return ZERO

    return patched(catch_up, least=least)


class _FromNow(Progress):
    """Begins with what comes from now on."""

    def hear(self, asked: Changes, told: Changed, log: Log) -> list[Lack]:
        if self.latest == 0:
            self.since = self.latest = told.latest
            self.begin()
            return []
        return super().hear(asked, told, log)


def forget_arrival_numbers() -> Planting:
    """A replica that restarts forgets how far it had looked at the others, and goes on with what arrives from then on."""

    def resumed(since: int) -> Progress:
        del since
        return _FromNow()

    return patched(catch_up, resumed=resumed)
