"""A replica that meets an unknown configuration reads in the cluster's register which one was chosen, and goes there."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from quorate.adts.log import Value
from quorate.adts.types.catalogue import CONFIGURATION
from quorate.api_specs.cluster import ChoiceRule
from quorate.client_sdk.protocol.configurations import joint
from quorate.client_sdk.protocol.core.values import Done, Failed, Outcome, Read
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.configured import WrongCluster
from quorate.replica.service.member import Member
from quorate.replica.upkeep import looking as module
from quorate.replica.upkeep.looking import Looking
from tests.unit.replica.conftest import one_replica

FIRST = one_replica()
BOTH = joint(FIRST, replace(FIRST, choices=(ChoiceRule("queue/*", collect=False),)))
UNKNOWN = "f" * 64
WAIT_S = 60.0


class Register:
    """A front end that reads this from the cluster's register."""

    def __init__(self) -> None:
        self.told: Outcome = Done(None, "Read/Ok", frozenset())
        self.reads = 0

    async def run(self, operation: Read, deadline_s: float) -> Outcome:
        assert (operation, deadline_s) == (Read(CONFIGURATION), module.DEADLINE_S)
        self.reads += 1
        return self.told


class Rig:
    def __init__(self, folder: Path) -> None:
        self.member = Member(open_folder(folder, FIRST, "r1"))
        self.register = Register()
        self.looking = Looking(self.member, self.register)

    def meet(self, given: str = UNKNOWN) -> None:
        """Somebody goes by this."""
        with pytest.raises(WrongCluster):
            self.member.configured.check(given)

    async def reads(self, number: int) -> None:
        """Wait until the register was read so often, and what came of it was taken."""
        async with asyncio.timeout(WAIT_S):
            while self.register.reads < number or self.member.configured.is_unknown_met:
                await asyncio.sleep(0.001)


@pytest_asyncio.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(module, "ROUND_S", 0.001)
    monkeypatch.setattr(module, "REST_S", 0.001)
    made = Rig(tmp_path)
    yield made
    await made.looking.stop()
    await asyncio.to_thread(made.member.close)


async def test_what_was_chosen_and_told_to_nobody_is_found_and_followed(rig: Rig) -> None:
    rig.register.told = Done(Value(msgspec.json.encode(BOTH).decode()), "Read/Ok", frozenset())
    rig.looking.start()
    rig.meet()
    await rig.reads(1)
    assert rig.member.document == BOTH


async def test_nothing_is_read_unless_somebody_goes_by_another_configuration(rig: Rig) -> None:
    rig.looking.start()
    await asyncio.sleep(0.05)
    assert rig.register.reads == 0
    await rig.member.configured.follow(BOTH)
    rig.meet(FIRST.hash)  # The one before: whoever goes by it goes on by himself.
    await asyncio.sleep(0.05)
    assert rig.register.reads == 0


@pytest.mark.parametrize(
    "told", [Done(None, "Read/Ok", frozenset()), Failed("unavailable", "no quorum", definite=True)]
)
async def test_where_nothing_is_found_it_rests_and_looks_again_for_the_next(rig: Rig, told: Outcome) -> None:
    rig.register.told = told
    rig.looking.start()
    for number in (1, 2):
        rig.meet()
        await rig.reads(number)
    assert rig.member.document == FIRST


async def test_many_who_are_refused_cost_one_look_in_a_rest(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_S", 3600.0)
    rig.looking.start()
    rig.meet()
    await rig.reads(1)
    rig.meet()
    await asyncio.sleep(0.05)
    assert rig.register.reads == 1
