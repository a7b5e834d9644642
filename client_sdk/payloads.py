"""Payloads on demand: one replica sends them unasked, the others only ids and timestamps. Pure."""

from collections.abc import Generator

from quorate.adts.log import Value
from quorate.api_specs.messages import Collect, Collected
from quorate.client_sdk.mirror import Mirror
from quorate.client_sdk.tasks import Event, Gathering, Task
from quorate.timestamps.timestamp import Timestamp


def fetch_payloads(
    task: Task, mirror: Mirror, missing: set[Timestamp]
) -> Generator[float, Event, dict[Timestamp, Value]]:
    """The values of these entries, from whichever replicas hold them; Expired when no replica that answers does.

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
    round_ = Gathering(task, lambda _: request, mirror.votes)

    def has_more() -> bool:
        for reply in round_.replies.values():
            assert isinstance(reply, Collected)
            rows = (row.entry for row in reply.rows)
            found.update({entry.t: entry.value for entry in rows if isinstance(entry.value, str)})
        return len(found) > before

    yield from round_.wait(has_more)
