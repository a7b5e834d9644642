"""`quorate change NEW`: other quorum choices and votes for a cluster that runs, and that goes on running.

Owns the words: what becomes more and less available, and how far the change has come. What is done, `quorate.client_sdk.protocol.reconfiguration` says.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ...adts.specification import operation_of
from ...api_specs.cluster import ClusterDocument, ReplicaInfo
from ...api_specs.configuration import (
    difference_of_documents,
    keeping_places,
    keeping_states,
    loses,
    tolerated,
)
from ...client_sdk.api.connect import Recipe
from ...client_sdk.errors import QuorateError
from ...client_sdk.protocol.configurations import NOBODY, moved
from ...client_sdk.protocol.reconfiguration import (
    Steps,
    Wanted,
    in_place,
    is_like,
    take_back,
    to_begin,
    to_move,
)
from ...client_sdk.protocol.reconfiguration import change as steps_to
from ...client_sdk.transport.tls import from_environment
from ..change_progress import Progress, missing
from ..credentials import read_token
from ..failure import Failure, PartlyDone, Usage
from ..options import ClusterOption
from ..output import AsJson, answer, console_for_people, reported, say
from .document import DEFAULT_NAME, read_document
from .probe import NoAnswer, Refuses, get
from .status import ask_all, told_document

DEADLINE_S: Final = 3600.0
RATE: Final = 100
"""Objects a second. On two cores, the 99th percentile of what callers wait was about twice as long meanwhile as without a change."""
_GO_ON: Final = "repeat the command to go on, or take it back with `quorate change --abort`"

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and do nothing.")]
ChangeDeadlineOption = Annotated[
    float,
    typer.Option(
        "--deadline", metavar="SECONDS", min=1, help="Stop then; whoever repeats the command goes on."
    ),
]
RateOption = Annotated[
    int,
    typer.Option(
        "--rate",
        metavar="OBJECTS_PER_S",
        min=1,
        help="Copy no more objects in a second. More take less time, and callers feel it more.",
    ),
]


class Manner(Struct, frozen=True):
    """How a change is carried out: `rate` is how many objects may be copied in a second; `dead` are members that are off for good."""

    dry_run: bool
    deadline_s: float
    rate: int
    as_json: bool
    dead: frozenset[str] = NOBODY


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
    rate: RateOption = RATE,
    as_json: AsJson = False,
) -> None:
    """Give a running cluster other quorum choices or votes; callers go on.

    It needs a token with the scopes admin and write, and waits until old
    idempotency keys expire: about a minute by default.
    Whoever repeats a change that was cut off goes on with it.

    Afterwards put NEW in the place of the old file, at leisure: replicas
    know what is in force.
    """
    if (new is None) != abort:
        raise Usage("Name the cluster file as it is to be, as `quorate change new.toml`; or --abort alone.")
    if new is not None:
        if not new.exists():
            raise Usage(
                f"There is no file {new}: print the one in force, `quorate configuration > new.toml`, and write into it what is to be."
            )
        now = told_document(cluster)
        want = partial(keeping_states, with_stores(read_document(new), now))
        if found := difference_of_documents(now, want(now)):
            say(f"Members, votes and rules: {found.replace(' then', ' before')}.")
        manner = Manner(dry_run, deadline_s, rate, as_json, frozenset(dead or ()))
        carry_out(now, want, manner)
        return
    if dry_run or dead:
        raise Usage(f"--abort with {'--dry-run' if dry_run else '--declare-dead'}: leave one of them out.")
    was_at = told_document(cluster)
    taken: list[ClusterDocument | None] = []
    document = drive(was_at, partial(_taken_back, taken), Manner(dry_run, deadline_s, rate, as_json))
    text = _told_of_end(was_at, document, taken[-1])
    answer(as_json, {"epoch": document.number, "hash": document.hash}, text)


def _told_of_end(was_at: ClusterDocument, document: ClusterDocument, back: ClusterDocument | None) -> str:
    """What became of a change that was to be taken back, where this is in force now."""
    text = f"Configuration {document.number} is in force"
    if back is None and was_at.former is not None and document.number == was_at.number + 1:
        back = (
            document if is_like(document, was_at.former) else None
        )  # By another operator, or by one's own command of before.
    if back is not None and back.number == document.number:
        return f"{text}, with the quorums of before the change."
    if back is not None:
        return f"The change was taken back with configuration {back.number}. Another operator has changed the cluster since: {text[0].lower()}{text[1:]}."
    if document.number > was_at.number:
        return f"{text}: the change had come to its end already."
    return f"No change was under way. {text}."


def carry_out(
    now: ClusterDocument,
    want: Wanted,
    manner: Manner,
    shown: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Say what becomes more and less available than now, what those that are declared dead take with them, and who is waited for; have the cluster go on
    to the configuration, and answer what is in force, and for programs what else was `shown`. Raises Failure."""
    want = in_place(want)
    wanted = want(now)
    _check(now, wanted, manner.dead)
    for id, url in to_move(now, wanted).items():
        check_there(now, id, url)
        say(f"{id} moves from {now.urls[id]} to {url}.")
    shifts = list(shifts_between(now, wanted))
    for shift in shifts:
        say(f"{shift.told}.")
    is_same = now.former is None and is_like(now, wanted)
    told: dict[str, Any] = {"shifts": to_builtins(shifts), **shown}
    if manner.dead:
        dead = sorted({*manner.dead, *now.declared_dead})
        told["lost"] = loses(now, dead)
        say(_words_of_loss(told["lost"], dead))
    told["awaited"] = awaited = [] if is_same else _awaited(now, wanted, manner.dead)
    if awaited:
        say(f"The change does not begin before {', '.join(awaited)} answer{'s' * (len(awaited) == 1)}.")
    if manner.dry_run:
        text = "Nothing would change." if is_same else "Nothing was changed."
        answer(manner.as_json, told | {"epoch": now.number}, text)
        return
    document = drive(now, partial(_steps, want, manner.dead), manner, want)
    text = f"Configuration {document.number} is in force."
    answer(manner.as_json, told | {"epoch": document.number, "hash": document.hash}, text)


def _awaited(now: ClusterDocument, wanted: ClusterDocument, dead: AbstractSet[str]) -> list[str]:
    there, wanted = _placed(now, wanted)
    both = None if there.former is None and is_like(there, wanted) else to_begin(there, wanted, dead)
    return [] if both is None else missing(both, {each.id for each in ask_all(both) if each.is_up})


def _placed(now: ClusterDocument, wanted: ClusterDocument) -> tuple[ClusterDocument, ClusterDocument]:
    """Both, once the members have moved that are to: that comes first. Raises BadCluster where one cannot."""
    places = to_move(now, wanted)
    there = moved(now, places) if places else now
    return there, keeping_places(wanted, there)


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
    """The replica at the URL, as it says itself who it is; its id and its store must be those that are given, if they are. A member of now may be down:
    whoever repeats a change that was cut off goes on with it. Raises Usage or Failure where it cannot become a member."""
    try:
        told: Any = get(url, "/v1/status", read_token())
        id, store, cluster = str(told["replica"]), str(told["store"]), told["cluster"]
    except (NoAnswer, KeyError, TypeError) as error:
        return _silent(now, url, as_given, error)
    if cluster != now.name:
        raise Usage(f"{url} is a replica of cluster {cluster!r}, and this is {now.name!r}.")
    if (epoch := told.get("epoch", 0)) > now.number:
        raise Failure(
            f"{url} is in configuration {epoch}, and the members that answered are in {now.number}. They go on by themselves: repeat the command. If they do "
            "not, it is of another cluster of that name."
        )
    if epoch == now.number and told.get("hash") != now.hash:
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


def check_there(now: ClusterDocument, id: str, url: str) -> None:
    """Raises Usage or Failure unless this member answers at the URL, with the store that it always had."""
    try:
        told: Any = get(url, "/v1/status", read_token())
        found = str(told["cluster"]), str(told["replica"]), str(told["store"])
    except (NoAnswer, KeyError, TypeError) as error:
        raise Failure(
            f"{url} does not tell which replica it is: {error}. Start {id} there first, on its data folder, with a cluster file that has this URL for it."
        ) from None
    if found != (now.name, id, now.stores[id] or found[2]):
        raise Usage(
            f"{url} is {found[1]} of cluster {found[0]!r} with store {found[2]}, and {id} of {now.name!r} has store {now.stores[id]}: start {id} there on "
            "its own data folder."
        )


def _silent(now: ClusterDocument, url: str, as_given: ReplicaInfo, why: Exception) -> ReplicaInfo:
    """The member of now at this URL, which does not answer. Raises Failure where none is there, or it is not the one that is given."""
    for member in now.replicas:
        is_given = as_given.id in ("", member.id) and as_given.store in ("", member.store)
        if member.url == url and member.store and is_given:
            return member
    raise Failure(
        f"{url} does not tell which replica it is: {why}. A new one is started by: quorate serve --cluster FILE --id ID --data DIR --join {url}"
    ) from None


def _words_of_loss(lost: Sequence[str], dead: Collection[str]) -> str:
    names = " and ".join(dead)
    if not lost:
        return f"No quorum consists of {names} alone: nothing that was acknowledged is lost."
    return f"What {names} alone stored is lost, if others have not copied it yet: acknowledged {', '.join(lost)}."


def _check(now: ClusterDocument, wanted: ClusterDocument, dead: AbstractSet[str] = NOBODY) -> None:
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
    if now.former is not None or not is_like(now, wanted):
        to_begin(*_placed(now, wanted), dead)  # Raises BadCluster where it cannot follow.
    for id in dead:
        _check_leaves(id, now, wanted)
        _check_off(id, now)


def _check_leaves(id: str, now: ClusterDocument, wanted: ClusterDocument) -> None:
    """Raises Usage unless the change removes the member that is declared dead, or it has left already."""
    if id not in now.votes and id not in now.former_members:
        raise Usage(f"{id} cannot be declared dead: the members are {', '.join(now.own_votes)}.")
    if id in wanted.own_votes:
        raise Usage(
            f"{id} would still be a member: declare it dead in the change that removes or replaces it."
        )


def _check_off(id: str, now: ClusterDocument) -> None:
    """Raises Usage where the replica answers, also where it has too much to do, is not ready, or refuses the token."""
    if id not in now.urls:
        return
    try:
        told = get(now.urls[id], "/v1/status", read_token())
    except Refuses as refused:
        raise Usage(
            f"{now.urls[id]} answers ({refused}), so that {id} may not be off: stop what runs there for good, or see that it tells who it is."
        ) from None
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


def drive(
    now: ClusterDocument,
    steps: Callable[[ClusterDocument], Steps],
    manner: Manner,
    want: Wanted | None = None,
) -> ClusterDocument:
    """Have the steps done that begin with the configuration of now, where a change is meant to what is wanted, and say how far they are: what is in force
    then. Raises Failure."""
    recipe = Recipe(now, {}, read_token(), None, from_environment())
    out = None if manner.as_json else console_for_people()
    progress = Progress(want, dead=manner.dead, out=out, rate=manner.rate, deadline_s=manner.deadline_s)

    async def run() -> ClusterDocument:
        async with asyncio.timeout(manner.deadline_s):
            return await recipe.operate(lambda at: progress.follow(steps(at)), rate=manner.rate)

    try:
        with progress:
            document = asyncio.run(run())
    except TimeoutError:
        raise _cut_off(progress, f"After {manner.deadline_s:g} s", progress.waits) from None
    except KeyboardInterrupt:
        raise _cut_off(progress, "Stopped:", progress.waits) from None
    except QuorateError as error:
        if not (progress.is_joint or progress.is_choosing):
            raise
        raise _cut_off(progress, "Stopped:", str(error)) from None
    if progress.behind:
        say(
            f"{', '.join(progress.behind)} did not answer: leave its cluster file as it is until it has gone on, which it does by itself once it reaches "
            "another replica."
        )
    return document


def _cut_off(progress: Progress, when: str, why: str) -> Failure:
    """What is to be said of a change that did not come to its end."""
    if not (progress.is_joint or progress.is_choosing):
        return Failure(f"{when} the change has not begun: {why}. Nothing was changed.")
    certain = "may be" if progress.is_choosing else "is"
    return PartlyDone(f"{when} the change {certain} under way: {why}; {_GO_ON}.")


def _taken_back(taken: list[ClusterDocument | None], at: ClusterDocument) -> Steps:
    document, back = yield from take_back(at)
    taken.append(back)
    return document


def _steps(want: Wanted, dead: frozenset[str], at: ClusterDocument) -> Steps:
    return steps_to(at, want, dead)
