"""What a replica says of itself at `/v1/status`.

Owns the form. It reads what the member knows, and asks nobody else.
"""

import time
from typing import Any

from quorate.replica.member import Lag, Member
from quorate.replica.tombstones import Waiting
from quorate.timestamps.timestamp import wall_us


async def status_of(member: Member) -> dict[str, Any]:
    reasons = member.why_not_ready()
    vitals = None if reasons else await member.vitals()
    return {
        "cluster": member.document.name,
        "hash": member.document.hash,
        "replica": member.id,
        "store": member.folder.identity.store,
        "incarnation": member.folder.incarnation,
        "now_us": member.wall_us(),
        "objects": None if vitals is None else vitals.objects,
        "clock": None if vitals is None else vitals.clock,
        "file_bytes": None if vitals is None else vitals.file_bytes,
        "tombstones": None if vitals is None else _tombstones(vitals.tombstones, member.wall_us()),
        "catch_up": {name: _catch_up(lag) for name, lag in member.lags.items()},
        "reasons": reasons,
    }


def _catch_up(lag: Lag) -> dict[str, Any]:
    age_s = None if lag.level_s is None else time.monotonic() - lag.level_s
    return {"lag": lag.changes, "age_s": age_s, "entries": lag.entries}


def _tombstones(waiting: Waiting, now_us: int) -> dict[str, Any]:
    oldest_s = None if waiting.oldest is None else max(0.0, (now_us - wall_us(waiting.oldest)) / 1e6)
    return {"waiting": waiting.keys, "oldest_s": oldest_s, "held_up_by": waiting.held_up_by}
