"""`quorate change NEW`: other quorum choices and votes for a cluster that runs, and that goes on running.

Owns the words: what becomes more and less available, and how far the change has come. What is done, `quorate.client_sdk.protocol.reconfiguration` says.
"""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ...adts.specification import operation_of
from ...api_specs.cluster import ClusterDocument, ReplicaInfo
from ...api_specs.configuration import configuration_of, difference, loses, tolerated
from ...client_sdk.api.connect import Recipe
from ...client_sdk.errors import QuorateError
from ...client_sdk.protocol.configurations import joint
from ...client_sdk.protocol.core.values import Carry, CompareAndSet, Done, Failed, Outcome
from ...client_sdk.protocol.reconfiguration import (
    Ask,
    CarryAll,
    Holding,
    Perform,
    Steps,
    Tell,
    Todo,
    Wait,
    Wanted,
    is_like,
    take_back,
)
from ...client_sdk.protocol.reconfiguration import change as steps_to
from ...client_sdk.transport.tls import from_environment
from ..credentials import read_token
from ..failure import Failure, PartlyDone, Usage
from ..options import ClusterOption
from ..output import AsJson, answer, reported, say
from .document import DEFAULT_NAME, read_document, url_of
from .probe import NoAnswer, get
from .status import cluster_document

DEADLINE_S: Final = 900.0
TOLD_S: Final = 2.0
"""Between two lines that say what is waited for."""
TOLD_EVERY: Final = 1000
"""Objects copied."""
_GO_ON: Final = "repeat the command to go on, or take it back with `quorate change --abort`"

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and do nothing.")]
ChangeDeadlineOption = Annotated[
    float,
    typer.Option(
        "--deadline", metavar="SECONDS", min=1, help="Stop then; whoever repeats the command goes on."
    ),
]


DeadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--declare-dead",
        metavar="ID",
        help="A member that leaves, is off, and stays off: the change does not wait for it. What it alone stored is lost.",
    ),
]


class Shift(Struct, frozen=True):
    """For event classes of some objects, how many replicas may be down, whichever they are: before and after."""

    objects: str
    event_classes: tuple[str, ...]
    before: int
    after: int

    @property
    def told(self) -> str:
        """In words."""
        better = "more" if self.after > self.before else "less"
        failed = {0: "no failed replica", 1: "1 failed replica"}.get(
            self.after, f"{self.after} failed replicas"
        )
        classes = ", ".join(self.event_classes)
        return f"{self.objects}: {classes} {better} available: tolerates {failed} (was {self.before})"


@reported
def change(
    new: Annotated[
        Path | None, typer.Argument(metavar="NEW", help="The cluster file as it is to be.")
    ] = None,
    cluster: ClusterOption = DEFAULT_NAME,
    abort: Annotated[
        bool, typer.Option("--abort", help="Take the change under way back, instead of NEW.")
    ] = False,
    dead: DeadOption = None,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Give a running cluster other quorum choices or votes; callers go on.

    It needs a token with the scopes admin and write, and waits until old
    idempotency keys expire: a retry window at most.
    Whoever repeats a change that was cut off goes on with it.

    Afterwards put NEW in the place of the old file, at leisure: replicas
    know what is in force.
    """
    if (new is None) != abort:
        raise Usage("Name the cluster file as it is to be, as `quorate change new.toml`; or --abort alone.")
    if new is not None:
        now = cluster_document(cluster)
        wanted = with_stores(read_document(new), now)
        if found := difference(configuration_of(now), configuration_of(wanted)):
            say(f"Members, votes and rules: {found.replace(' then', ' before')}.")
        carry_out(
            cluster,
            now,
            lambda _: wanted,
            dead=dead or (),
            dry_run=dry_run,
            deadline_s=deadline_s,
            as_json=as_json,
        )
        return
    if dry_run or dead:
        raise Usage(f"--abort with {'--dry-run' if dry_run else '--declare-dead'}: leave one of them out.")
    was_at = cluster_document(cluster)
    taken: list[bool] = []
    document = _driven(cluster, None, deadline_s, taken)
    text = f"Configuration {document.number} is in force"
    if taken == [True]:
        text += ", with the quorums of before the change."
    elif document.number > was_at.number:
        text += ": the change had come to its end already."
    else:
        text = f"No change was under way. {text}."
    answer(as_json, {"epoch": document.number, "hash": document.hash}, text)


def carry_out(
    cluster: str,
    now: ClusterDocument,
    want: Wanted,
    *,
    dead: Collection[str] = (),
    shown: Mapping[str, Any] = MappingProxyType({}),
    dry_run: bool,
    deadline_s: float,
    as_json: bool,
) -> None:
    """Say what becomes more and less available than now, and what those that are declared dead take with them; have the cluster go on to the
    configuration, and answer what is in force, and for programs what else was `shown`. Raises Failure."""
    wanted = want(now)
    _check(now, wanted, dead)
    shifts = list(shifts_between(now, wanted))
    for shift in shifts:
        say(f"{shift.told}.")
    told: dict[str, Any] = {"shifts": to_builtins(shifts), **shown}
    if dead:
        told["lost"] = loses(now, dead)
        say(_words_of_loss(told["lost"], dead))
    if dry_run:
        is_same = now.former is None and is_like(now, wanted)
        answer(
            as_json,
            told | {"epoch": now.number},
            "Nothing would change." if is_same else "Nothing was changed.",
        )
        return
    document = _driven(cluster, want, deadline_s, dead=dead)
    text = f"Configuration {document.number} is in force."
    answer(as_json, told | {"epoch": document.number, "hash": document.hash}, text)


def with_stores(wanted: ClusterDocument, now: ClusterDocument) -> ClusterDocument:
    """The document, with the stores that the cluster knows of its members; new ones are asked for theirs. Raises Usage or Failure where one
    cannot become a member."""
    known = now.stores
    members = (
        replace(each, store=each.store or known[each.id])
        if each.id in known
        else joining(now, each.url, each)
        for each in wanted.replicas
    )
    return replace(wanted, replicas=tuple(members))


def joining(now: ClusterDocument, url: str, as_given: ReplicaInfo) -> ReplicaInfo:
    """The replica at the URL, as it says itself who it is; its id and its store must be those that are given, if they are. Raises Usage or Failure
    where it cannot become a member."""
    try:
        told: Any = get(url, "/v1/status", read_token())
        id, store, cluster = str(told["replica"]), str(told["store"]), told["cluster"]
    except (NoAnswer, KeyError, TypeError) as error:
        raise Failure(
            f"{url} does not tell which replica it is: {error}. A new one is started by: quorate serve --cluster FILE --id ID --data DIR --join {url}"
        ) from None
    if cluster != now.name:
        raise Usage(f"{url} is a replica of cluster {cluster!r}, and this is {now.name!r}.")
    if told.get("epoch", 0) >= now.number and told.get("hash") != now.hash:
        raise Usage(
            f"{url} goes by another cluster file, or is of another cluster of that name: start it with this one's file."
        )
    if id in now.former_members:
        raise Usage(
            f"{url} is {id}, which was a member before: start it with another id, and an empty folder."
        )
    if (place := told.get("url", url)) != url:
        raise Usage(f"{url} is {id}, which others reach at {place}, as it was started: give that URL.")
    if as_given.id not in ("", id) or as_given.store not in ("", store):
        raise Usage(
            f"{url} is {id} with store {store}, and the file says {as_given.id} {as_given.store}: correct it."
        )
    known = next((each for each in now.replicas if each.id == id), None)
    if known is not None and (known.url, known.store) == (url, store):
        return known
    if known is not None or id in now.votes:
        raise Usage(
            f"{id} is a member already, at {now.urls[id]} with store {now.stores[id]}, and {url} has store {store}: start the new one with an id of its own."
        )
    return replace(as_given, id=id, url=url, store=store)


def _words_of_loss(lost: Sequence[str], dead: Collection[str]) -> str:
    names = " and ".join(dead)
    if not lost:
        return f"No quorum consists of {names} alone: nothing that was acknowledged is lost."
    return f"What {names} alone stored is lost, if others have not copied it yet: acknowledged {', '.join(lost)}."


def _check(now: ClusterDocument, wanted: ClusterDocument, dead: Collection[str] = ()) -> None:
    if wanted.name != now.name:
        raise Usage(
            f"The file is of cluster {wanted.name!r}, and this one is {now.name!r}: name its own file."
        )
    unnamed = [id for id in wanted.own_votes if id in now.stores and not now.stores[id]]
    if wanted.own_votes.keys() != now.own_votes.keys() and unnamed:
        raise Usage(
            f"The cluster file names no store of {', '.join(unnamed)}: an empty folder could vote in its place, and knows no other members. Write "
            '`store = "…"`, as `quorate member list --json` tells it, into every copy of the file, and start the replicas again.'
        )
    if now.former is None and not is_like(now, wanted):
        joint(now, wanted, dead)  # Raises BadCluster where it cannot follow.
    for id in dead:
        _check_off(id, now)


def _check_off(id: str, now: ClusterDocument) -> None:
    """Raises Usage where the replica answers."""
    if id not in now.urls:
        return
    try:
        told = get(now.urls[id], "/v1/status", read_token())
    except NoAnswer:
        return
    if isinstance(told, dict) and told.get("replica") == id:
        raise Usage(f"{id} answers at {now.urls[id]}: stop it for good before it is declared dead.")


def shifts_between(now: ClusterDocument, wanted: ClusterDocument) -> Iterator[Shift]:
    """Of all objects that a rule of either names, and of those without one. While the cluster changes, from what was before."""
    before = now if now.former is None else now.former
    patterns = dict.fromkeys(rule.objects for rule in (*wanted.choices, *before.choices))
    for adt in wanted.specifications:
        own = [each for each in patterns if each.partition("/")[0] in (adt, "*")]
        for objects in dict.fromkeys(
            [*(f"{adt}/{each.partition('/')[2] or '*'}" for each in own), f"{adt}/*"]
        ):
            yield from _shifts_of(objects, before, wanted)


def _shifts_of(objects: str, before: ClusterDocument, after: ClusterDocument) -> Iterator[Shift]:
    choices = [(each.choice_of(objects), len(each.replicas)) for each in (before, after)]
    grouped: dict[tuple[int, int], list[str]] = {}
    for event_class in choices[1][0].classes:
        then, later = (
            min(
                tolerated(quorum, members)
                for quorum in (each.initial_of(operation_of(event_class)), each.final_of(event_class))
            )
            for each, members in choices
        )
        if then != later:
            grouped.setdefault((then, later), []).append(event_class)
    for counts, classes in grouped.items():
        yield Shift(objects, tuple(classes), *counts)


def _driven(
    cluster: str,
    want: Wanted | None,
    deadline_s: float,
    taken: list[bool] | None = None,
    dead: Collection[str] = (),
) -> ClusterDocument:
    steps = (
        partial(_taken_back, [] if taken is None else taken)
        if want is None
        else partial(_steps, want, frozenset(dead))
    )
    place = url_of(cluster) or read_document(Path(cluster))
    recipe = Recipe(place, {}, read_token(), None, from_environment())
    progress = Progress(want)

    async def run() -> ClusterDocument:
        async with asyncio.timeout(deadline_s):
            return await recipe.operate(steps, progress.hear)

    try:
        document = asyncio.run(run())
    except TimeoutError:
        if progress.has_begun:
            words = f"After {deadline_s:g} s the change is under way: {progress.waits}; {_GO_ON}."
            raise PartlyDone(words) from None
        words = f"After {deadline_s:g} s the change has not begun: {progress.waits}. Nothing was changed."
        raise Failure(words) from None
    except QuorateError as error:
        if not progress.has_begun:
            raise
        raise PartlyDone(f"The change is under way: {error}; {_GO_ON}.") from None
    except KeyboardInterrupt:
        raise PartlyDone(f"The change may be under way: {_GO_ON}.") from None
    if progress.behind:
        say(
            f"{', '.join(progress.behind)} did not answer: leave its cluster file as it is until it has gone on, which it does by itself once it reaches "
            "another replica."
        )
    return document


def _taken_back(taken: list[bool], at: ClusterDocument) -> Steps:
    document, is_taken = yield from take_back(at)
    taken.append(is_taken)
    return document


def _steps(want: Wanted, dead: frozenset[str], at: ClusterDocument) -> Steps:
    return steps_to(at, want, dead)


def _lacking(told: Mapping[str, Holding], wanted: ClusterDocument) -> str:
    """Why a change does not begin, by what members of it answer."""
    silent = [name for name in wanted.votes if name not in told]
    unknown = {name: [each for each in told[name].awaits if each in wanted.votes] for name in told}
    found = [f"{', '.join(silent)} did not answer"] if silent else []
    found += [
        f"{name} has not been heard by {', '.join(others)}, so that it could not vote (its log says why; start those that are down, or replace them)"
        for name, others in unknown.items()
        if others
    ]
    if not found and len({each.cluster for each in told.values()}) > 1:
        found = ["they are in different configurations, or clusters"]
    return "; ".join(found) or "too few answered"


class Progress:
    """Says how far a change has come, as its steps are done."""

    def __init__(self, want: Wanted | None) -> None:
        self._want: Final = want
        self.waits = "no quorum answers"
        """What it waits for."""
        self.behind: list[str] = []
        """Replicas that did not go on to the configuration that was told last."""
        self.has_begun = False
        """Whether both may be in force."""
        self._said_s, self._said = time.monotonic(), ""
        self._epoch = 0
        self._objects = self._done = 0
        self._keys = 0

    def hear(self, todo: Todo, told: Any) -> None:
        """A step was done, and this came of it. What it waits for is said, where that is long, or another thing than before."""
        self._hear(todo, told)
        if isinstance(todo, Wait) and self.waits != self._said and time.monotonic() > self._said_s + TOLD_S:
            self._said_s, self._said = time.monotonic(), self.waits
            say(f"Waiting: {self.waits}.")

    def _hear(self, todo: Todo, told: Any) -> None:
        match todo:
            case Tell(document=document, to=None):
                self._told(document, told)
            case Ask(document=document) if document.former is None:
                self.waits = _lacking(told, document)
            case Ask(names=True):
                self._objects = len({name for each in told.values() for name in each.objects})
                say(f"{self._objects} object{'s' * (self._objects != 1)} to copy.")
            case Ask():
                self._remembered(max((each.keys for each in told.values()), default=0))
            case CarryAll(operations=operations):
                self._carried(operations, told)
            case Perform(operation=CompareAndSet()):
                self.has_begun |= not (isinstance(told, Failed) and told.definite)

    def _told(self, document: ClusterDocument, told: dict[str, int]) -> None:
        self.has_begun |= document.former is not None
        self.behind = [name for name in document.votes if told.get(name, -1) < document.number]
        self.waits = f"{', '.join(self.behind) or 'nobody'} did not go on to configuration {document.number}"
        if document.former is not None and self.behind:
            self.waits += " (one that is off for good can be removed, or replaced, with --declare-dead ID)"
        if document.former is not None and document.number > self._epoch:
            self._epoch = document.number
            say(f"Joint configuration {document.number}: each quorum is one of the old and one of the new.")
            if self._want is not None and not is_like(document, self._want(document)):
                say("It is another operator's change, which is finished first.")

    def _carried(self, operations: Sequence[Carry], outcomes: Sequence[Outcome]) -> None:
        left = [
            each.object
            for each, outcome in zip(operations, outcomes, strict=True)
            if not isinstance(outcome, Done)
        ]
        self.waits = f"{left[0]} is not copied yet" if left else "it goes on"
        before, self._done = self._done, self._done + len(operations) - len(left)
        if self._done // TOLD_EVERY > before // TOLD_EVERY:
            say(f"{self._done} of {self._objects} objects copied.")

    def _remembered(self, keys: int) -> None:
        self.waits = f"{keys} old idempotency keys have not expired yet"
        if keys and not self._keys:
            self._keys = keys
            say(f"Waiting until old idempotency keys expire ({keys} now), a retry window at most.")
