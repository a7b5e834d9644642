"""Payloads on demand: one replica sends them unasked, the others only ids and timestamps. Pure."""

from collections.abc import Generator
from typing import Final

from quorate.adts.log import Value
from quorate.api_specs.messages import Collect, Collected
from quorate.client_sdk.mirror import Mirror
from quorate.client_sdk.tasks import Event, Gathering, Task
from quorate.timestamps.timestamp import Timestamp

PATIENCE_S: Final = 0.3
"""How long to wait for replicas that are silent, when those that answer lack what only the others showed."""


class Withheld(Exception):
    """Only silent replicas ever showed some of the entries; the mirror has dropped what they alone had shown."""


def fetch_payloads(
    task: Task, mirror: Mirror, missing: set[Timestamp]
) -> Generator[float, Event, dict[Timestamp, Value]]:
    """The values of these entries, from whichever replicas hold them; Expired when no replica that answers does.
    Withheld when the mirror dropped some: an entry that no initial quorum shows need not be waited for.

    A reply holds a page of them at most, so it may take several rounds.
    """
    found: dict[Timestamp, Value] = {}
    while missing - found.keys():
        request = Collect(mirror.name, wanted=tuple(sorted(missing - found.keys())), known=mirror.ballot)
        yield from _one_round(task, mirror, request, found)
    return found


def _one_round(
    task: Task, mirror: Mirror, request: Collect, found: dict[Timestamp, Value]
) -> Generator[float, Event, None]:
    before = len(found)
    round_ = Gathering(task, lambda _: request, mirror.replicas)

    def has_more() -> bool:
        for reply in round_.replies.values():
            assert isinstance(reply, Collected)
            rows = (row.entry for row in reply.rows)
            found.update({entry.t: entry.value for entry in rows if isinstance(entry.value, str)})
        return len(found) > before

    if (yield from round_.wait(has_more, task.now.mono_s + PATIENCE_S)):
        return
    if round_.replies and mirror.drop_shown_by(mirror.replicas - round_.replies.keys(), request.wanted):
        raise Withheld
    yield from round_.wait(has_more)
