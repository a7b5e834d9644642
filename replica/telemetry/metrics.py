"""The metrics of one replica, in the form that Prometheus reads: gathered when somebody asks, from numbers that are counted
anyway.

Owns the step from our plain numbers to families of the Prometheus library, and the registry of one application. Counting
costs the work nothing here: no call of the library is made but for an answer.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from ... import __version__
from ...adts.log import LeaseCounts
from ...client_sdk.protocol.core.counters import SECONDS, Counts, Distribution, Histogram
from ...timestamps.timestamp import wall_us
from ..http.traffic import Traffic
from ..service.member import Lag, Member, StoreLost, Vitals
from ..service.quorums_held import held_now
from ..store.group_commit import Overloaded
from ..store.store import StorageFailed
from ..store.survey import Figures, OfQueue, Survey
from .metric_table import EVENTS, METRICS, OF_QUEUES

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
REST_S: Final = 0.05
"""Between two texts, each of which takes about 4 ms of the processor."""
_TROUBLES: Final = ("stopping", "store-lost", "other-configuration", "starting", "storage-failed")
_DATABASE: Final = {False: "database", True: "write-ahead-log"}

Series = Iterable[tuple[tuple[str, ...], float]]


class Gathered(Struct):
    """What must be asked for before an answer: what the store says. None where it cannot answer now."""

    vitals: Vitals | None = None
    figures: Figures | None = None


class Metrics:
    """The metrics of `member`'s application; `counts` gives those of its front end, once there is one,
    `commands` are those of other front ends by outcome."""

    def __init__(
        self,
        member: Member,
        traffic: Traffic,
        counts: Callable[[], Counts | None],
        commands: Mapping[str, int],
    ) -> None:
        self._member: Final = member
        self._traffic: Final = traffic
        self._counts: Final = counts
        self._commands: Final = commands
        database = member.folder.database
        self._survey: Final = None if database is None else Survey(database.path, member.wall_us)
        self._gathered = Gathered()
        self._text = b""
        self._begun_s = -1.0
        self._turn: Final = asyncio.Lock()
        self.registry: Final = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    async def text(self, queues: int = 0) -> bytes:
        """All metrics at a moment after the call, and those of so many single queues. Those who ask meanwhile share it, and it is not made
        again at once: to make it holds up the event loop."""
        asked_s = time.monotonic()
        async with self._turn:
            if self._begun_s < asked_s:
                await asyncio.sleep(self._begun_s + REST_S - time.monotonic())
                begun_s = time.monotonic()
                self._text = await self._made()
                self._begun_s = begun_s
            figures = self._gathered.figures
            if not queues or figures is None:
                return self._text
            return self._text + generate_latest(_OfQueues(figures.queues[:queues]))

    async def _made(self) -> bytes:
        gathered = Gathered()
        try:
            gathered.vitals = await self._member.vitals()
            gathered.figures = None if self._survey is None else await self._survey.figures()
        except (StoreLost, Overloaded, StorageFailed):
            pass  # `quorate_ready` and its reason say so; what does not need the store is told all the same.
        self._gathered = gathered
        return generate_latest(self.registry)

    async def aclose(self) -> None:
        """Leave the store's file alone."""
        if self._survey is not None:
            await self._survey.aclose()

    def collect(self) -> Iterator[Family]:
        """See `prometheus_client.registry.Collector`."""
        yield from self._of_member()
        if (counts := self._counts()) is not None:
            yield from _of_front_end(counts)
        yield from self._of_requests()
        yield from self._of_store()
        if self._gathered.figures is not None:
            yield from _of_logs(self._gathered.figures)
        yield from self._of_traffic()
        yield from self._of_peers()
        yield from _of_lags(self._member.lags)
        outboxes = self._member.outboxes
        stalled_s = {} if outboxes is None else outboxes.stalled_s(time.monotonic())
        yield _family("quorate_outboxes_open", len(stalled_s))
        yield _family("quorate_outbox_stalled_seconds", max(stalled_s.values(), default=0.0))
        yield from self._of_standing_rules()

    def _of_member(self) -> Iterator[Family]:
        member, trouble = self._member, self._member.trouble
        folder, spoken = member.folder, member.configured.protocols
        of_store = (folder.identity.store, folder.incarnation)
        identity = (member.document.name, member.id, *of_store, __version__, spoken.text)
        yield _family("quorate_replica_info", [(identity, 1)])
        yield _family("quorate_configuration", member.document.number)
        yield _family("quorate_ready", trouble is None)
        yield _family("quorate_not_ready", [((each,), each == trouble) for each in _TROUBLES])

    def _of_standing_rules(self) -> Iterator[Family]:
        switches, rules = self._member.switches, self._member.document.standing_rules
        in_force = [((rule.objects,), rule.has_fallen_back) for rule in rules]
        yield _family("quorate_fallback_in_force", in_force)
        yield _family("quorate_switches_total", [((each,), times) for each, times in switches.ended.items()])
        yield _family("quorate_switch_waits", bool(switches.waits))

    def _of_requests(self) -> Iterator[Family]:
        requests = self._member.requests
        yield _family("quorate_commands_total", [((each,), times) for each, times in self._commands.items()])
        yield _family("quorate_replica_requests_total", sorted(requests.requests.items()))
        yield _family("quorate_fences_raised_total", requests.fences_raised)
        yield _family("quorate_entries_stored_total", requests.entries_stored)
        yield _family("quorate_entries_fenced_total", requests.entries_fenced)

    def _of_store(self) -> Iterator[Family]:
        if (transactions := self._member.transactions) is not None:
            yield _histogram("quorate_transaction_requests", {(): transactions.requests.taken()})
            yield _histogram("quorate_transaction_rows", {(): transactions.rows.taken()})
            yield _histogram("quorate_commit_duration_seconds", {(): transactions.commit_s.taken()})
        if (vitals := self._gathered.vitals) is None:
            return
        waiting = vitals.tombstones
        yield _family("quorate_objects", vitals.use.objects)
        used = vitals.capacity_used.items()
        yield _family("quorate_capacity_used_ratio", [((bound,), share) for bound, share in used])
        ahead_us = wall_us(vitals.clock) - self._member.wall_us()
        yield _family("quorate_stored_ahead_seconds", max(0, ahead_us) / 1e6)
        sizes = {name.endswith("-wal"): size for name, size in vitals.file_bytes.items()}
        of_files = [((file,), sizes.get(is_log, 0)) for is_log, file in _DATABASE.items()]
        yield _family("quorate_storage_bytes", of_files)
        yield _family("quorate_tombstones_waiting", waiting.keys)
        age_us = 0 if waiting.oldest is None else self._member.wall_us() - wall_us(waiting.oldest)
        yield _family("quorate_tombstone_age_seconds", max(0, age_us) / 1e6)
        silent = [((each,), each in waiting.held_up_by) for each in self._member.document.votes]
        yield _family("quorate_tombstones_held_up", silent)

    def _of_traffic(self) -> Iterator[Family]:
        traffic = self._traffic
        yield _family("quorate_connections", traffic.connections)
        yield _family("quorate_connections_made_total", traffic.connections_made)
        yield _family("quorate_http_requests_under_way", traffic.under_way)
        yield _family("quorate_http_requests_total", traffic.requests)
        refusals = traffic.refusals.items()
        yield _family("quorate_refusals_total", [((name,), times) for name, times in refusals])

    def _of_peers(self) -> Iterator[Family]:
        peers = sorted(self._member.peers.items())
        yield _family("quorate_peer_up", [((name,), peer.is_up) for name, peer in peers])
        classes = held_now(self._member).classes
        held = {(each.objects, each.type, each.event_class): each.is_held for each in classes}
        yield _family("quorate_quorums_held", held.items())
        offsets = [((name,), peer.offset_us / 1e6) for name, peer in peers if peer.offset_us is not None]
        errors = [((name,), peer.error_us / 1e6) for name, peer in peers if peer.offset_us is not None]
        yield _family("quorate_clock_offset_seconds", offsets)
        yield _family("quorate_clock_offset_error_seconds", errors)


class _OfQueues(Collector):
    """The families of single queues."""

    def __init__(self, queues: Sequence[OfQueue]) -> None:
        self._queues: Final = [(each.name.partition("/")[2], each) for each in queues]

    def collect(self) -> Iterator[Family]:
        """See `prometheus_client.registry.Collector`."""
        known = self._queues
        yield _family("quorate_one_queue_log_entries", [((name,), each.length) for name, each in known])
        yield _family("quorate_one_queue_entries_waiting", [((name,), each.waiting) for name, each in known])
        ages = [((name,), max(0, each.oldest_us) / 1e6) for name, each in known]
        yield _family("quorate_one_queue_oldest_waiting_seconds", ages)
        leases = [((name, state), number) for name, each in known for state, number in _states(each.leases)]
        yield _family("quorate_one_queue_leases", leases)


def _of_lags(lags: Mapping[str, Lag]) -> Iterator[Family]:
    now_s, known = time.monotonic(), sorted(lags.items())
    behind = [((name,), lag.changes) for name, lag in known if lag.changes is not None]
    yield _family("quorate_catch_up_lag", behind)
    level = [((name,), now_s - lag.level_s) for name, lag in known if lag.level_s is not None]
    yield _family("quorate_catch_up_age_seconds", level)
    yield _family("quorate_catch_up_entries_total", [((name,), lag.entries) for name, lag in known])
    yield _family("quorate_catch_up_bytes_total", [((name,), lag.bytes) for name, lag in known])


def _of_front_end(counts: Counts) -> Iterator[Family]:
    taken = counts.taken()
    durations: dict[tuple[str, ...], Histogram] = {}
    ended = {}
    for kind, each in taken.operations.items():
        ended[kind.type, kind.operation, kind.outcome] = each.count
        _add(durations.setdefault((kind.type, kind.operation), Histogram(SECONDS)), each)
    yield _family("quorate_operations_total", ended.items())
    all_outcomes = {labels: each.taken() for labels, each in durations.items()}
    yield _histogram("quorate_operation_duration_seconds", all_outcomes)
    yield _histogram("quorate_round_duration_seconds", {(kind,): each for kind, each in taken.rounds.items()})
    events = [
        ((event.replace(" ", "-"),), taken.events.get(event, 0)) for event in {**EVENTS, **taken.events}
    ]
    yield _family("quorate_front_end_events_total", events)


def _of_logs(figures: Figures) -> Iterator[Family]:
    if figures.entries is not None and figures.entries_max is not None:
        yield _family("quorate_log_entries", figures.entries)
        yield _family("quorate_log_entries_max", figures.entries_max)
    yield _family("quorate_queue_entries_waiting", figures.waiting)
    yield _family("quorate_queue_entries_waiting_max", figures.waiting_max)
    yield _family("quorate_queue_oldest_waiting_seconds", max(0, figures.oldest_waiting_us or 0) / 1e6)
    yield _family("quorate_horizon_age_seconds", max(0, figures.horizon_age_us or 0) / 1e6)
    leases = _states(LeaseCounts(figures.held, figures.kept_waiting, figures.dead))
    yield _family("quorate_queue_leases", [((state,), number) for state, number in leases])
    yield _family("quorate_queue_dead_letters_max", figures.dead_max)
    yield _family("quorate_survey_partial", figures.is_partial)


def _states(leases: LeaseCounts) -> tuple[tuple[str, int], ...]:
    return ("held", leases.held), ("waiting", leases.waiting), ("dead", leases.dead)


def _family(name: str, series: float | Series) -> Family:
    """Metric `name` of the table, with the values of its series by their labels; a metric without labels has one value."""
    told = METRICS.get(name) or OF_QUEUES[name]
    kind = CounterMetricFamily if told.kind == "counter" else GaugeMetricFamily
    family = kind(name, told.help, labels=told.labels)
    for labels, value in [((), series)] if isinstance(series, int | float) else series:
        family.add_metric(labels, float(value))
    return family


def _histogram(name: str, series: Mapping[tuple[str, ...], Distribution]) -> Family:
    told = METRICS[name]
    family = HistogramMetricFamily(name, told.help, labels=told.labels)
    for labels, found in series.items():
        bounds = [*map(floatToGoString, found.bounds), "+Inf"]
        buckets = list(zip(bounds, map(float, accumulate(found.counts)), strict=True))
        family.add_metric(labels, buckets, found.sum)
    return family


def _add(whole: Histogram, part: Distribution) -> None:
    for place, times in enumerate(part.counts):
        whole.counts[place] += times
    whole.sum += part.sum
