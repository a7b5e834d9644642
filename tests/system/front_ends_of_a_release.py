"""Front ends under load: `python front_ends_of_a_release.py DOCUMENT HISTORY FIRST_NUMBER`, until the input ends.

For each line of the input it waits until further operations on each object have ended well, and prints the line. It is run as a file, with the code of
the release that PYTHONPATH names; that one's `tests` bring the load.
"""

import asyncio
import itertools
import sys
from pathlib import Path
from typing import Final

from quorate.api_specs.cluster import parse
from quorate.client_sdk import connect_async
from quorate.client_sdk.api.history import History
from tests.system import load as work
from tests.system.load import DEADLINE_S, MAJORITIES, Load, goes_on

COUNT: Final = 2
PACE_S: Final = 0.1
"""That of both releases: the earlier one's rests are shorter."""


async def main(document: Path, history: Path, first_number: int) -> None:
    """Work until the input ends."""
    work.PACE_S = PACE_S  # type: ignore[misc]
    load = Load(deadline_s=DEADLINE_S)
    load._numbers = itertools.count(first_number)
    known = parse(document.read_text())
    made = [connect_async(known, deadline_s=DEADLINE_S, history=History(history)) for _ in range(COUNT)]
    async with made[0] as one, made[1] as other, asyncio.TaskGroup() as group:
        for client in (one, other):
            for worker in load.workers(client):
                group.create_task(worker)
        while when := await asyncio.to_thread(sys.stdin.readline):
            await goes_on(load, MAJORITIES, when.strip())
            print(when, end="", flush=True)
        load.is_over = True


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
