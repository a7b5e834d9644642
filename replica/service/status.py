"""What a replica says of itself at `/v1/status`.

Owns the form. It reads what the member knows, and asks nobody else.
"""

import time
from heapq import nlargest
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct, to_builtins

from ... import __version__
from ...api_specs.outboxes import outbox_named
from ...gc.tombstones import Waiting
from ...timestamps.timestamp import wall_us
from .member import Lag, Member
from .own_types import OwnTypes

OUTBOXES_MAX: Final = 100
"""Of how many it tells."""


class CatchUp(Struct, frozen=True):
    """How far a replica is behind another one: `lag` changes of its logs that were not looked at yet, or may not be installed yet
    (None: not known), the seconds since nothing was missing (None: never yet), and how many entries were brought."""

    lag: int | None
    age_s: float | None
    entries: int


async def status_of(member: Member, types: OwnTypes) -> dict[str, Any]:
    reasons = member.why_not_ready()
    vitals = None if reasons else await member.vitals()
    return {
        "cluster": member.document.name,
        "hash": member.document.hash,
        "epoch": member.document.number,
        "replica": member.id,
        "release": __version__,
        "protocol": to_builtins(member.configured.protocols),
        "url": member.folder.url,
        "store": member.folder.identity.store,
        "incarnation": member.folder.incarnation,
        "now_us": member.wall_us(),
        "objects": None if vitals is None else vitals.use.objects,
        "clock": None if vitals is None else vitals.clock,
        "capacity_used": None if vitals is None else vitals.capacity_used,
        "file_bytes": None if vitals is None else vitals.file_bytes,
        "tombstones": None if vitals is None else _tombstones(vitals.tombstones, member.wall_us()),
        "catch_up": to_builtins(catch_up_of(member)),
        "outboxes": _outboxes(member),
        "fallbacks": {rule.objects: rule.has_fallen_back for rule in member.document.standing_rules},
        "switch_waits": member.switches.waits,
        "without_code": {name: found for name, found in types.items() if isinstance(found, str)},
        "reasons": reasons,
    }


def catch_up_of(member: Member) -> dict[str, CatchUp]:
    """How far the replica is behind each other one."""
    return {name: _catch_up(lag) for name, lag in member.lags.items()}


def _catch_up(lag: Lag) -> CatchUp:
    age_s = None if lag.level_s is None else time.monotonic() - lag.level_s
    return CatchUp(lag.changes, age_s, lag.entries)


def _outboxes(member: Member) -> dict[str, float]:
    """Those of its outboxes whose items have waited longest, by queue, and for how long."""
    stalled_s = {} if member.outboxes is None else member.outboxes.stalled_s(time.monotonic())
    longest = nlargest(OUTBOXES_MAX, stalled_s.items(), key=itemgetter(1))
    return {outbox.queue: seconds for name, seconds in longest if (outbox := outbox_named(name))}


def _tombstones(waiting: Waiting, now_us: int) -> dict[str, Any]:
    oldest_s = None if waiting.oldest is None else max(0.0, (now_us - wall_us(waiting.oldest)) / 1e6)
    ahead_s = 0.0 if waiting.newest is None else max(0.0, (wall_us(waiting.newest) - now_us) / 1e6)
    return {
        "waiting": waiting.keys,
        "oldest_s": oldest_s,
        "ahead_s": ahead_s,
        "held_up_by": waiting.held_up_by,
    }
