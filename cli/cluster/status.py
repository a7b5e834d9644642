"""`quorate status`: each replica's own word on how it is, beside what the cluster file says."""

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace
from rich import box
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from ...api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, from_json
from ...api_specs.configuration import check_same_cluster, in_force
from ...api_specs.limits import CAPACITY_ALARM
from ...api_specs.messages import FOLLOWING, UNTOLD, Protocols
from ...client_sdk.errors import QuorateError
from ...client_sdk.transport.http_transport import check_hosts
from ...timestamps.timestamp import parse, wall_us
from ..credentials import read_token
from ..failure import EXIT_FAILED, Failure
from ..options import ClusterOption
from ..output import AsJson, answer, console, reported, say
from .document import DEFAULT_NAME, read_document, url_of
from .probe import HostUnknown, NoAnswer, TlsFailed, WrongToken, get
from .served import HEALTH_PATH, RuleServed, served_by

NOT_IN_FORCE: Final = "not in force; it is"
_MIB: Final = 1024 * 1024
BEHIND_S: Final = 10.0
"""A replica that was not level with another one for so long is said to be behind; while callers are served, a second is usual."""
_POLL_S: Final = 0.2
"""Between two questions of one who waits."""
_WIDE: Final = 10_000
"""Characters that no row fills."""
_TITLES: Final = ("replica", "state", "url", "incarnation", "objects", "files", "clock")
_NUMBERS: Final = frozenset({"objects", "files", "clock"})


class Tombstones(Struct, frozen=True):
    """Deleted dictionary keys that a replica keeps until all replicas have confirmed the deletion."""

    waiting: int
    oldest_s: float | None
    held_up_by: tuple[str, ...]
    ahead_s: float = 0.0

    @property
    def told(self) -> str:
        """How many there are and for how long, in words."""
        age = f", the oldest for {self.oldest_s:.0f} s" if self.oldest_s else ""
        ahead = f", some for {self.ahead_s:.0f} s yet, for clocks were ahead of time" if self.ahead_s else ""
        return f"{self.waiting} deleted {'key' if self.waiting == 1 else 'keys'}{age}{ahead}"


class CatchUp(Struct, frozen=True):
    """How far a replica is behind another one: `lag` changes of its logs that it has not looked at yet, or may not install yet
    (None: not known), and the seconds since nothing was missing (None: that never was)."""

    lag: int | None
    age_s: float | None

    @property
    def is_behind(self) -> bool:
        """Whether it lasts."""
        return bool(self.lag) and (self.age_s is None or self.age_s > BEHIND_S)


class Found(Struct, frozen=True):
    """What one replica answered. `trouble` and `fix` say what is wrong with it and what to do; empty when nothing is.

    `is_ready`: it can vote in the cluster of this document, not merely in the one that it believes to be in.
    `tls_failed`: something listens there, which may be the replica; more is not known.
    `clock_offset_s`: how far its clock is ahead of this machine's, to within half the round trip.
    `stored_ahead_s`: how far the highest timestamp in its store is ahead of its clock.
    """

    id: str
    url: str
    is_up: bool = False
    is_ready: bool = False
    tls_failed: bool = False
    incarnation: str = ""
    store: str = ""
    release: str = ""
    """Empty where it does not tell: it is of before releases were told."""
    protocol: Protocols | None = None
    """Which versions of the replica protocol it speaks; None where it does not answer."""
    objects: int | None = None
    file_bytes: int | None = None
    clock_offset_s: float | None = None
    stored_ahead_s: float | None = None
    tombstones: Tombstones | None = None
    catch_up: dict[str, CatchUp] = {}
    """By other replica."""
    outboxes: dict[str, float] = {}
    """By queue, for how many seconds items in its outbox could not be relayed."""
    capacity_used: dict[str, float] | None = None
    """The share of each of its bounds."""
    without_code: dict[str, str] = {}
    """Types whose calls it cannot run, and why."""
    document_agrees: bool | None = None
    switch_waits: str = ""
    """Why it does not switch a standing rule that is due, or would not; empty where nothing speaks against it."""
    quorums: str = ""
    """What it says itself that quorums lack; empty where nothing."""
    trouble: str = ""
    fix: str = ""

    @property
    def full(self) -> list[str]:
        """The bounds of which it has used all, by their options: nothing new is installed meanwhile."""
        return [bound for bound, share in (self.capacity_used or {}).items() if share >= 1]


@reported
def status(
    cluster: ClusterOption = DEFAULT_NAME,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait so long until all are ready.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """How each replica is. Exit code 1 unless all are ready and hold the same cluster file."""
    given = _given(cluster)
    until_s = time.monotonic() + wait_s
    document = _in_force(cluster, given)
    found = ask_all(document)
    while not all(each.is_ready for each in found) and time.monotonic() < until_s:
        time.sleep(_POLL_S)
        # Of replicas that only start nobody told which configuration is in force.
        document = _in_force(cluster, given)
        found = ask_all(document)
    if as_json:
        told = {"replicas": [to_builtins(each) for each in found]}
        told |= {"quorums": [to_builtins(each) for each in served_now(document, found)]}
        answer(
            True,
            told
            | {
                "configuration": {
                    "epoch": document.number,
                    "is_changing": document.former is not None,
                    "fallbacks": {rule.objects: rule.has_fallen_back for rule in document.standing_rules},
                }
            },
        )
    else:
        _show(found)
        if document.number:
            console().print(_told_of(document))
        for line in fallbacks(document, found):
            console().print(f"{escape(line)}.")
        for line in lacking(document, found) or own_views(found):
            console().print(f"{escape(line)}.")
    if not all(each.is_ready for each in found):
        raise typer.Exit(EXIT_FAILED)


def _told_of(document: ClusterDocument) -> str:
    """Which configuration is in force, where that was changed while the cluster ran."""
    changing = "; the cluster is changing to it from the one before" if document.former is not None else ""
    return f"Configuration {document.number} is in force, chosen while the cluster ran{changing}."


def cluster_document(cluster: str) -> ClusterDocument:
    """The document in a file, or as the replica at a URL serves it; with the configuration in force, where that was changed while the cluster ran: one that
    was removed may know of an earlier one."""
    return _in_force(cluster, _given(cluster))


def _in_force(cluster: str, given: ClusterDocument) -> ClusterDocument:
    documents = [in_force(given, each) for each in _told(given).values() if isinstance(each, ClusterDocument)]
    return _latest(cluster, [*documents, given])


def _given(cluster: str) -> ClusterDocument:
    """The file, or what the replica at the URL goes by."""
    if (url := url_of(cluster)) is None:
        return read_document(Path(cluster))
    token = read_token()
    try:
        document = from_json(get(url, "/v1/cluster", token)["document"])
    except TlsFailed as error:
        raise Failure(f"{url} does not tell its cluster file: {error}; {error.fix}.") from None
    except (NoAnswer, KeyError, TypeError) as error:
        raise Failure(f"{url} does not tell its cluster file: {error}. Is a replica running there?") from None
    check_hosts(url, document, has_token=token is not None)
    return document


def told_document(cluster: str) -> ClusterDocument:
    """What is in force, as replicas tell it alone: a file may be older, or edited already. Says who did not answer. Raises Failure."""
    given = _given(cluster)
    told = _told(given)
    silent = {id: found for id, found in told.items() if isinstance(found, str)}
    if len(silent) == len(told) and url_of(cluster) is None:
        reasons = "; ".join(f"{id}: {why}" for id, why in silent.items())
        raise Failure(f"No replica tells which configuration is in force: {reasons}.")
    if silent:
        say(f"{', '.join(silent)} did not answer, and may know of a later configuration.")
    return _latest(cluster, [each for each in told.values() if isinstance(each, ClusterDocument)] or [given])


def _latest(cluster: str, documents: Sequence[ClusterDocument]) -> ClusterDocument:
    """The latest of them; where replicas go by different files, that of most."""
    times = Counter(each.hash for each in documents)
    latest = max(documents, key=lambda each: (each.number, times[each.hash]))
    if (url := url_of(cluster)) is not None:
        check_hosts(url, latest, has_token=read_token() is not None)
    return latest


def _told(file: ClusterDocument) -> dict[str, ClusterDocument | str]:
    """What each replica of the file says is in force, or why it does not."""
    token = read_token()

    def told(url: str) -> ClusterDocument | str:
        try:
            document = from_json(get(url, "/v1/cluster", token)["document"])
            check_same_cluster(file, document)
            check_hosts(url, document, has_token=False)
        except (NoAnswer, BadCluster, QuorateError) as error:
            return str(error)
        except (KeyError, TypeError):
            return "it answers, but not as a replica does"
        return document

    with ThreadPoolExecutor(len(file.urls)) as pool:
        return dict(zip(file.urls, pool.map(told, file.urls.values()), strict=True))


def ask_all(document: ClusterDocument) -> list[Found]:
    """What every replica answers; all are asked at once."""
    token = read_token()
    with ThreadPoolExecutor(len(document.urls)) as pool:
        return list(pool.map(lambda id: _ask(document, id, token), document.urls))


def _ask(document: ClusterDocument, id: str, token: str | None) -> Found:
    url = document.urls[id]
    began_us = time.time_ns() // 1000
    try:
        told = get(url, "/v1/status", token)
        found = understood(document, id, told, (began_us + time.time_ns() // 1000) // 2)
        return replace(found, quorums=_quorums_of(url)) if found.is_ready else found
    except WrongToken as error:
        return Found(id, url, is_up=True, trouble=str(error), fix="set QUORATE_TOKEN to this cluster's token")
    except TlsFailed as error:
        return Found(id, url, tls_failed=True, trouble=str(error), fix=error.fix)
    except HostUnknown as error:
        return Found(id, url, trouble=str(error), fix=error.fix)
    except NoAnswer as error:
        return Found(
            id, url, trouble=str(error), fix=f"start it (quorate serve --id {id} …), or look at its log"
        )


def _quorums_of(url: str) -> str:
    """What the replica itself says that quorums lack."""
    try:
        get(url, HEALTH_PATH)
    except NoAnswer as error:
        return str(error)
    return ""


def _ahead_s(clock: str, now_us: int) -> float:
    return max(0, wall_us(parse(clock)) - now_us) / 1e6


def understood(document: ClusterDocument, id: str, told: Any, here_us: int) -> Found:
    """The answer of `GET /v1/status`, given when this machine's clock stood at `here_us`. Raises NoAnswer."""
    try:
        agrees = told["hash"] == document.hash
        trouble, fix = "; ".join(told["reasons"]), ""
        if trouble:
            fix = "do what is said there; its log has more"
        protocol = convert(told.get("protocol", UNTOLD), Protocols)
        if told["replica"] != id:
            trouble, fix = f"it says that it is {told['replica']}", "correct the urls of the cluster file"
        elif (epoch := told.get("epoch", 0)) != document.number:
            trouble = f"it is in configuration {epoch}, and the cluster in {document.number}"
            fix = "it goes on by itself, as soon as it reaches one of the others"
            if protocol.newest < FOLLOWING:
                fix = "update its release: it knows of no changes while the cluster runs"
        elif not agrees:
            trouble, fix = "it holds another cluster file", "give all the same one, and restart it"
        return Found(
            id,
            document.urls[id],
            is_up=True,
            is_ready=not trouble,
            incarnation=told["incarnation"],
            store=told.get("store", ""),
            release=told.get("release", ""),
            protocol=protocol,
            objects=told["objects"],
            file_bytes=None if told["file_bytes"] is None else sum(told["file_bytes"].values()),
            clock_offset_s=(told["now_us"] - here_us) / 1e6,
            stored_ahead_s=None if told["clock"] is None else _ahead_s(told["clock"], told["now_us"]),
            tombstones=convert(told["tombstones"], Tombstones | None),
            catch_up=convert(told.get("catch_up", {}), dict[str, CatchUp]),
            outboxes=convert(told.get("outboxes", {}), dict[str, float]),
            switch_waits=convert(told.get("switch_waits", ""), str),
            capacity_used=convert(told.get("capacity_used"), dict[str, float] | None),
            without_code=convert(told.get("without_code", {}), dict[str, str]),
            document_agrees=agrees,
            trouble=trouble,
            fix=fix,
        )
    except (KeyError, TypeError, AttributeError, ValueError, ValidationError):
        raise NoAnswer("it answers, but not as a replica does") from None


def _show(found: list[Found]) -> None:
    out = console()
    table = _table(found)
    if Measurement.get(out, out.options.update(width=_WIDE), table).maximum > out.width:
        table = _table(found, leave_out=("incarnation", "clock"))
    out.print(table)
    for each in found:
        if each.trouble:
            fix = f": {each.fix}" if each.fix else ""
            out.print(f"{each.id}: {escape(each.trouble + fix)}.")
    for line in (
        *releases(found),
        *behind(found),
        *stalled(found),
        *nearly_full(found),
        *without_code(found),
    ):
        out.print(f"{escape(line)}.")
    for each in found:
        if each.tombstones is not None and each.tombstones.waiting:
            by = ", ".join(each.tombstones.held_up_by)
            out.print(
                f"{each.id} waits to forget {each.tombstones.told}{f'; held up by {by}' if by else ''}."
            )


def served_now(document: ClusterDocument, found: list[Found]) -> list[RuleServed]:
    """What the replicas that are ready can serve together."""
    return served_by(document, [each.id for each in found if each.is_ready])


def lacking(document: ClusterDocument, found: list[Found]) -> list[str]:
    """A line for each rule and type, where some operation finds no quorum; else none."""
    served = served_now(document, found)
    return [each.told for each in served] if any(each.lacking for each in served) else []


def fallback_state(document: ClusterDocument, rule: ChoiceRule) -> str:
    """Whether the fallback of the rule is in force, in words before "while" and its condition. In the middle of a switch neither choice is enough."""
    before = () if document.former is None else document.former.choices
    if any(
        each.objects == rule.objects and each == rule.in_state(not rule.has_fallen_back) for each in before
    ):
        return "being put in force; it holds" if rule.has_fallen_back else "being put out of force; it holds"
    return "in force" if rule.has_fallen_back else NOT_IN_FORCE


def fallbacks(document: ClusterDocument, found: list[Found]) -> list[str]:
    """A line for each fallback in force, and for each reason why none is switched."""
    in_force = [
        f"{rule.objects}: its fallback is {fallback_state(document, rule)} while {rule.standing.condition}"
        for rule in document.standing_rules
        if rule.standing is not None and fallback_state(document, rule) != NOT_IN_FORCE
    ]
    waiting: dict[str, list[str]] = {}
    for each in found:
        if each.switch_waits:
            waiting.setdefault(each.switch_waits, []).append(each.id)
    return in_force + [f"{', '.join(ids)}: {why}" for why, ids in waiting.items()]


def own_views(found: list[Found]) -> list[str]:
    """What replicas say of quorums by themselves, of those that find some lacking."""
    return [f"{each.id} says that {each.quorums}" for each in found if each.quorums]


def releases(found: list[Found]) -> list[str]:
    """A line for each release, where replicas run different ones."""
    at: dict[tuple[str, Protocols], list[str]] = {}
    for each in found:
        if each.protocol is not None:
            at.setdefault((each.release, each.protocol), []).append(each.id)
    if len(at) < 2:
        return []
    return [
        f"{', '.join(ids)}: release {release or 'of before'}, which speaks {protocol.told} of the replica protocol"
        for (release, protocol), ids in at.items()
    ]


def behind(found: list[Found]) -> list[str]:
    """A line for each replica that has long not been level with another one."""
    return [
        _behind(each, other, catch_up.lag)
        for each in found
        for other, catch_up in each.catch_up.items()
        if catch_up.is_behind
    ]


def _behind(found: Found, other: str, lag: int | None) -> str:
    if full := found.full:
        bounds = " and ".join(f"--{bound}" for bound in full)
        return f"{found.id} is behind {other}: {lag} changes that it cannot install, for it has used all of {bounds}"
    return f"{found.id} catches up with {other}: {lag} changes to look at"


def stalled(found: list[Found]) -> list[str]:
    """A line for each replica with items in outboxes that it has long not been able to relay."""
    lines = []
    for each in found:
        if late := {queue: seconds for queue, seconds in each.outboxes.items() if seconds > BEHIND_S}:
            queue, seconds = max(late.items(), key=itemgetter(1))
            others = f" and {len(late) - 1} other queue{'s' * (len(late) > 2)}" if len(late) > 1 else ""
            lines.append(
                f"{each.id} has items of {queue}{others} in its outboxes that it could not relay for {seconds:.0f} s"
            )
    return lines


def nearly_full(found: list[Found]) -> list[str]:
    """A line for each replica that has nearly as much as it may."""
    return [
        f"{each.id} has used {share:.0%} of --{bound}"
        for each in found
        for bound, share in (each.capacity_used or {}).items()
        if share >= CAPACITY_ALARM
    ]


def without_code(found: list[Found]) -> list[str]:
    """A line for each type whose code some replicas have not, and for each reason."""
    at: dict[tuple[str, str], list[str]] = {}
    for each in found:
        for told in each.without_code.items():
            at.setdefault(told, []).append(each.id)
    return [f"no call of {name} can be run at {', '.join(ids)}: {why}" for (name, why), ids in at.items()]


def _table(found: list[Found], leave_out: tuple[str, ...] = ()) -> Table:
    """One row for each replica; a narrow terminal leaves columns out, so that the URLs stay readable."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    titles = [title for title in _TITLES if title not in leave_out]
    for title in titles:
        table.add_column(
            title,
            overflow="fold",
            no_wrap=title != "url",
            justify="right" if title in _NUMBERS else "left",
        )
    for each in found:
        state = (
            "[green]ready[/]" if each.is_ready else "[yellow]not ready[/]" if each.is_up else "[red]down[/]"
        )
        size = "" if each.file_bytes is None else f"{each.file_bytes / _MIB:.1f} MiB"
        clock = "" if each.clock_offset_s is None else f"{each.clock_offset_s * 1000:+.1f} ms"
        objects = "" if each.objects is None else str(each.objects)
        cells = (each.id, state, each.url, each.incarnation[:8], objects, size, clock)
        table.add_row(*(cell for title, cell in zip(_TITLES, cells, strict=True) if title in titles))
    return table
