"""A real process is killed while it writes: what it had answered is there afterwards, complete and readable."""

import subprocess
import sys
from pathlib import Path

from quorate.replica.data_folder.identity import open_folder
from quorate.replica.store.store import Store
from quorate.timestamps.timestamp import ZERO
from tests.unit.replica.conftest import one_replica

WRITER = """
import asyncio, sys, time
from pathlib import Path
from quorate.adts.log import Entry
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Append, Appended
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member
from quorate.timestamps.clock import HybridClock
from tests.support.asking import answer_of

async def main():
    document = ClusterDocument("test", (ReplicaInfo("r1", "http://127.0.0.1:7001"),))
    member = Member(open_folder(Path(sys.argv[1]), document, "r1"))
    clock = HybridClock("w" + str(time.time_ns()))

    async def write():
        while True:
            t = clock.next(time.time_ns() // 1000)
            reply = await answer_of(member, [Append("queue/q", (Entry(t, t, '"' + "x" * 300 + '"'),), "first")])
            assert reply.replies[0].stored == (True,)
            print(t, flush=True)

    await asyncio.gather(*(write() for _ in range(8)))

asyncio.run(main())
"""


def test_what_was_answered_survives_kill_nine(tmp_path: Path) -> None:
    answered: set[str] = set()
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(300):
                answered.add(process.stdout.readline().strip())
            process.kill()
            answered.update(line.strip() for line in process.stdout if line.endswith("\n"))
    folder = open_folder(tmp_path, one_replica(), "r1")
    assert folder.database is not None
    store = Store(folder.database)
    found = {str(row.entry.t) for row in store.rows("queue/q", ZERO, 1_000_000)}
    assert len(answered) >= 900
    assert answered <= found
    assert store.clock >= max(found)
    assert store.arrival() >= len(found)
    store.close()
    folder.close()
