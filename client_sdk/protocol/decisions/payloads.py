"""Payloads on demand: one replica sends them unasked, the others only ids and timestamps. Pure."""

from collections.abc import Generator, Mapping
from itertools import chain
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from ....adts.log import Decision, Entry, Leased, Summary, Value
from ....api_specs.limits import Limits
from ....api_specs.messages import Collect, Collected
from ....api_specs.values import payload_bytes
from ....timestamps.timestamp import Timestamp
from ..core.log_cache import LogCache
from ..core.rounds import Event, Expired, Gathering, Task
from .lease_table import is_share_exceeded, is_too_heavy
from .summary_builder import fits_whole, remembered_bytes
from .transitions import Plan

PATIENCE_S: Final = 0.3
"""How long to wait for replicas that are silent, when those that answer lack what only the others showed."""


class Withheld(Exception):
    """Only silent replicas ever showed some of the entries; the log cache has dropped what they alone had shown."""


class TooHeavy(Exception):
    """With its payloads, a plan hands out or keeps more than may be sent, or lends a caller more than its share: it must be made anew, now that the log cache knows them."""


class Gone(Exception):
    """All replicas have answered, and none holds these entries any more. `expired` says so in words."""

    def __init__(self, timestamps: set[Timestamp], expired: Expired) -> None:
        super().__init__(expired.detail)
        self.expired: Final = expired
        self._timestamps: Final = timestamps

    def lacks(self, result: Any) -> bool:
        """Whether a plan's result delivers one of these entries."""
        parts = result if isinstance(result, tuple) else ()
        handed = (part for part in parts if isinstance(part, Entry | Leased))
        return any(entry_of(part).t in self._timestamps for part in handed)


def fetch_payloads(
    task: Task, cache: LogCache, missing: set[Timestamp], limits: Limits
) -> Generator[float, Event, dict[Timestamp, Value]]:
    """The values of these entries, from whichever replicas hold them; Gone when none of them all does.
    Withheld when the log cache dropped some: an entry that no initial quorum shows need not be waited for.

    A page of them is asked for at once, and a reply may hold fewer, so it may take several rounds.
    """
    found: dict[Timestamp, Value] = {}
    while missing - found.keys():
        wanted = tuple(sorted(missing - found.keys())[: limits.page_entries_max])
        request = Collect(cache.name, wanted=wanted, known=cache.ballot)
        try:
            yield from _one_round(task, cache, request, found)
        except Expired as expired:
            if expired.is_refused:
                raise Gone(set(wanted), expired) from None
            raise
    return found


def _one_round(
    task: Task, cache: LogCache, request: Collect, found: dict[Timestamp, Value]
) -> Generator[float, Event, None]:
    before = len(found)
    round_ = Gathering(task, lambda _: request, cache.replicas)

    def has_more() -> bool:
        for reply in round_.replies.values():
            assert isinstance(reply, Collected)
            rows = (row.entry for row in reply.rows)
            found.update({entry.t: entry.value for entry in rows if isinstance(entry.value, str)})
        return len(found) > before

    if (yield from round_.wait(has_more, task.now.mono_s + PATIENCE_S)):
        return
    if round_.replies and cache.drop_shown_by(
        frozenset(cache.replicas) - round_.replies.keys(), request.wanted
    ):
        raise Withheld
    yield from round_.wait(has_more)


Handed = Mapping[int, tuple[Entry | Leased, ...]]
"""What a plan delivers, by the command's place."""


def missing_in(summary: Summary, handed: Handed) -> set[Timestamp]:
    """The entries whose payloads are needed: of what is delivered, and of what the summary adopts or keeps."""
    results = (entry_of(each) for some in handed.values() for each in some)
    entries = chain(results, summary.adopted, summary.kept())
    return {entry.t for entry in entries if entry.value is UNSET}


def entry_of(part: Entry | Leased) -> Entry:
    """The entry that is delivered."""
    return part.entry if isinstance(part, Leased) else part


def filled(
    plan: Plan, handed: Handed, payloads: Mapping[Timestamp, Value], before: Summary, page_bytes_max: int
) -> Plan:
    """The plan with these payloads in the entries that it delivers (`handed`), adopts, keeps or tells of.

    `before`: the summary at hand, which must stay what it is.
    """
    is_unchanged = plan.summary == before

    def fill(part: Any) -> Any:
        if not isinstance(part, Entry):
            return replace(part, entry=fill(part.entry))
        return Entry(part.id, part.t, payloads[part.t]) if part.t in payloads else part

    ambiguous = {entry_id for entry_id, _ in plan.summary.ambiguous}
    size = remembered_bytes(plan.summary.recent)

    def remembered(decision: Decision) -> Decision:
        """With the payloads of what may not be complete, as far as there is room: too few logs may have it for a repeat."""
        nonlocal size
        whole = tuple(fill(each) if each.id in ambiguous else each for each in decision.taken)
        more = payload_bytes(whole) - payload_bytes(decision.taken)
        if not fits_whole(size, more, page_bytes_max):
            return decision
        size += more
        return replace(decision, taken=whole)

    results = {place: tuple(map(fill, parts)) for place, parts in handed.items()}
    summary = replace(
        plan.summary,
        adopted=tuple(map(fill, plan.summary.adopted)),
        leases=tuple(map(fill, plan.summary.leases)),
        dead=tuple(map(fill, plan.summary.dead)),
        recent=tuple(map(remembered, plan.summary.recent)),
    )
    events = [each if isinstance(each, str) else fill(each) for each in plan.events]
    return Plan(plan.summary if is_unchanged else summary, plan.results | results, events)


def is_overweight(full: Plan, limits: Limits) -> bool:
    """Whether the plan, whose payloads are all at hand now, hands out or keeps more than it may, or lends a caller more than its share."""
    kept = [entry for known in full.summary.recent for entry in known.taken]
    handed = [some for some in full.results.values() if _is_handed(some)]
    answers = (list(map(entry_of, some)) for some in handed)
    is_long = any(len(each) > 1 and payload_bytes(each) > limits.page_bytes_max for each in (kept, *answers))
    holders = {part.holder for part in chain.from_iterable(handed) if isinstance(part, Leased)}
    bytes_max = limits.leases_bytes_max
    return (
        is_long
        or is_too_heavy(full.summary, bytes_max)
        or is_share_exceeded(full.summary, holders, bytes_max)
    )


def _is_handed(result: Any) -> bool:
    return isinstance(result, tuple) and all(isinstance(each, Entry | Leased) for each in result)
