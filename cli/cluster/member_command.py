"""`quorate member list|add|remove|replace|move|votes`: the members of a running cluster.

Owns which members are wanted, and what is asked of those that join. How it is carried out, `change_command` says.
"""

from collections.abc import Collection, Iterable
from typing import Annotated, Final

import typer
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich import box
from rich.markup import escape
from rich.table import Table

from ...api_specs.cluster import BadCluster, ClusterDocument, ReplicaInfo
from ...api_specs.configuration import with_members
from ...api_specs.limits import VOTES_MAX
from ...client_sdk.protocol.configurations import moved
from ...client_sdk.protocol.reconfiguration import move
from ..failure import Failure, Usage
from ..groups import Group
from ..options import ClusterOption
from ..output import AsJson, answer, console, reported, say
from .change_command import (
    DEADLINE_S,
    RATE,
    ChangeDeadlineOption,
    DeadOption,
    DryRunOption,
    Manner,
    RateOption,
    carry_out,
    check_there,
    drive,
    joining,
)
from .document import DEFAULT_NAME, url_of
from .status import CatchUp, Found, ask_all, told_document

member_app = typer.Typer(cls=Group, help="The members of a running cluster.", no_args_is_help=True)

_TITLES: Final = ("replica", "role", "votes", "state", "missing", "url")

UrlsArgument = Annotated[
    list[str],
    typer.Argument(metavar="URL", help="Of replicas that run, started by `quorate serve --join URL`."),
]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID", help="Of members, as r2.")]
VotesOption = Annotated[
    int, typer.Option("--votes", min=0, max=VOTES_MAX, help="Of each; 0 for a learner, which holds copies.")
]


class MemberFound(Struct, frozen=True):
    """A member: its votes, and how it is. `missing`: changes of others that it has not yet, None where it does not tell."""

    id: str
    url: str
    votes: int
    role: str
    is_ready: bool
    missing: int | None
    store: str
    trouble: str


@member_app.command("list")
@reported
def list_members(cluster: ClusterOption = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Who is a member, with how many votes, and how far each is behind the others."""
    document = told_document(cluster)
    members = [_member(document, each) for each in ask_all(document)]
    if as_json:
        told = {"epoch": document.number, "is_changing": document.former is not None}
        answer(True, told | {"members": to_builtins(members), "removed": list(document.former_members)})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title in _TITLES:
        table.add_column(title, overflow="fold", justify="right" if title in ("votes", "missing") else "left")
    for each in members:
        state = "[green]ready[/]" if each.is_ready else "[red]not ready[/]"
        missing = "" if each.missing is None else str(each.missing)
        table.add_row(each.id, each.role, str(each.votes), state, missing, each.url)
    console().print(table)
    for each in members:
        if each.trouble:
            console().print(f"{each.id}: {escape(each.trouble)}.")
    changing = "" if document.former is None else "; the cluster changes to it from the one before"
    removed = f" Removed: {', '.join(document.former_members)}." if document.former_members else ""
    console().print(f"Configuration {document.number}{changing}.{removed}")


def _member(document: ClusterDocument, found: Found) -> MemberFound:
    votes = document.votes[found.id]
    is_leaving = document.former is not None and found.id not in document.own_votes
    role = "leaving" if is_leaving else "voter" if votes else "learner"
    missing = _missing(found.catch_up.values()) if found.is_up else None
    store = found.store or document.stores[found.id]
    return MemberFound(found.id, found.url, votes, role, found.is_ready, missing, store, found.trouble)


def _missing(catch_ups: Collection[CatchUp]) -> int | None:
    known = [each.lag for each in catch_ups if each.lag is not None]
    return max(known, default=0) if len(known) == len(catch_ups) else None


@member_app.command("add")
@reported
def add(
    urls: UrlsArgument,
    cluster: ClusterOption = DEFAULT_NAME,
    votes: VotesOption = 1,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    rate: RateOption = RATE,
    as_json: AsJson = False,
) -> None:
    """Make running replicas members; callers go on.

    Start each first, with the cluster file as it is:
    quorate serve --cluster FILE --id r4 --data DIR --join http://HOST:8004
    """
    now = told_document(cluster)
    new = _joining(now, urls, votes)
    _carry_out(now, Manner(dry_run, deadline_s, rate, as_json), new=new)


@member_app.command("remove")
@reported
def remove(
    ids: IdsArgument,
    cluster: ClusterOption = DEFAULT_NAME,
    dead: DeadOption = None,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    rate: RateOption = RATE,
    as_json: AsJson = False,
) -> None:
    """Have members leave; callers go on. Their ids never come back.

    It may be down, unless a quorum choice lets it store something alone:
    then declare it dead.
    """
    now = told_document(cluster)
    _check_known(now, ids)
    manner = Manner(dry_run, deadline_s, rate, as_json, frozenset(dead or ()))
    _carry_out(now, manner, leaving=ids)


@member_app.command("replace")
@reported
def replace_member(
    id: Annotated[
        str, typer.Argument(metavar="ID", help="The member that leaves, as r2: one whose disk is lost.")
    ],
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The running replica that takes its place and its votes.")
    ],
    cluster: ClusterOption = DEFAULT_NAME,
    dead: DeadOption = None,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    rate: RateOption = RATE,
    as_json: AsJson = False,
) -> None:
    """Put a new replica in the place of a member, in one change; callers go on.

    Start the new one first, as for `quorate member add`, with an id of its own.
    """
    now = told_document(cluster)
    _check_known(now, [id])
    new = _joining(now, [url], now.votes.get(id, 1))
    if new[0].id in now.own_votes and id in now.own_votes:
        raise Usage(f"{new[0].id} is a member already: start a new replica with an id of its own.")
    manner = Manner(dry_run, deadline_s, rate, as_json, frozenset(dead or ()))
    _carry_out(now, manner, new=new, leaving=[id])


@member_app.command("votes")
@reported
def set_votes(
    id: Annotated[str, typer.Argument(metavar="ID", help="The member, as r2.")],
    votes: Annotated[int, typer.Argument(metavar="VOTES", min=0, max=VOTES_MAX, help="0 for a learner.")],
    cluster: ClusterOption = DEFAULT_NAME,
    force: Annotated[
        bool, typer.Option("--force", help="Also a learner that is behind the others, or not ready.")
    ] = False,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    rate: RateOption = RATE,
    as_json: AsJson = False,
) -> None:
    """Give a member another number of votes: a learner its vote, once it is level with the others."""
    now = told_document(cluster)
    _check_known(now, [id])
    known = next((each for each in now.replicas if each.id == id), None)
    if known is None:
        raise Usage(f"{id} is about to leave, or has left: the members are {', '.join(now.own_votes)}.")
    if votes and not known.votes and (unfit := _unfit(id, ask_all(now))):
        if not force:
            raise Failure(f"{unfit}. Look again with `quorate member list`, or use --force.")
        say(f"{unfit}.")
    _carry_out(
        now,
        Manner(dry_run, deadline_s, rate, as_json),
        new=[replace(known, votes=votes)],
    )


@member_app.command("move")
@reported
def move_member(
    id: Annotated[str, typer.Argument(metavar="ID", help="The member, as r3.")],
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where it runs now, with the data folder that it had.")
    ],
    cluster: ClusterOption = DEFAULT_NAME,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Tell all that a member has moved to another URL; callers go on, and nothing is copied.

    Stop it, write the URL into its copy of the cluster file, and start it
    there on its data folder. All others learn the URL by this command.
    """
    now = told_document(cluster)
    _check_known(now, [id])
    if id not in now.votes:
        raise Usage(f"{id} has left: the members are {', '.join(now.own_votes)}.")
    url = _url(url)
    document, text = now, "Nothing would change." if now.urls[id] == url else "Nothing was changed."
    if now.urls[id] != url:
        moved(now, {id: url})  # Raises BadCluster where another one is there.
        check_there(now, id, url)
        say(f"{id} moves from {now.urls[id]} to {url}.")
    if not dry_run:
        document = drive(now, lambda _: move(now, {id: url}), Manner(dry_run, deadline_s, RATE, as_json))
        text = f"Configuration {document.number} is in force: {id} is at {url}."
    answer(as_json, {"epoch": document.number, "hash": document.hash}, text)


def _unfit(learner: str, members: Collection[Found]) -> str:
    """Why the learner should have no vote yet, by what members answered: operations would wait for one that has little. Empty where it may."""
    own = next(each for each in members if each.id == learner)
    if not own.is_ready:
        return f"{learner} is not ready: {own.trouble}"
    missed = {each.id: own.catch_up.get(each.id) for each in members if each.is_ready and each.id != learner}
    words = [
        f"how much of {other} is not known"
        if found is None or found.lag is None
        else f"{found.lag} of {other}"
        for other, found in missed.items()
        if found is None or found.lag is None or found.is_behind
    ]
    return f"{learner} is behind: it misses changes, {', '.join(words)}" if words else ""


def _carry_out(
    now: ClusterDocument,
    manner: Manner,
    *,
    new: Collection[ReplicaInfo] = (),
    leaving: Collection[str] = (),
) -> None:
    def wanted(at: ClusterDocument) -> ClusterDocument:
        return changed(at, new, leaving)

    members = ", ".join(f"{each.id} ({each.votes})" for each in wanted(now).replicas)
    say(f"Members and their votes: {members}.")
    carry_out(now, wanted, manner)


def changed(
    document: ClusterDocument, new: Iterable[ReplicaInfo], leaving: Collection[str]
) -> ClusterDocument:
    """The document with these members, and without those. Raises Usage where its rules do not fit them."""
    known, coming = document.own_votes.keys(), {each.id for each in new}
    if coming and leaving and not (known & leaving or coming <= known):
        raise Usage(f"{', '.join(leaving)} has left meanwhile: add the new one with `quorate member add`.")
    known_or_new = {each.id: each for each in document.replicas} | {each.id: each for each in new}
    members = [each for each in known_or_new.values() if each.id not in leaving]
    if not members:
        raise Usage("No member would be left: leave one out, or stop the replicas and remove their folders.")
    try:
        return with_members(document, members)
    except BadCluster as error:
        raise Usage(
            f"With these members: {error}. Change members and rules together: write both into a cluster file, and use `quorate change`."
        ) from None


def _check_known(document: ClusterDocument, ids: Collection[str]) -> None:
    known = {*document.votes, *document.former_members}
    places = {url: id for id, url in document.urls.items()}
    for id in ids:
        if (named := places.get(url_of(id) or "")) is not None:
            raise Usage(f"{id} is {named}: name a member by its id.")
        if id not in known:
            raise Usage(f"The cluster has no member {id!r}: they are {', '.join(document.own_votes)}.")


def _joining(now: ClusterDocument, urls: Collection[str], votes: int) -> list[ReplicaInfo]:
    """The replicas at these URLs. Raises Usage or Failure where one cannot become a member."""
    asked = [joining(now, url, ReplicaInfo("", url, votes)) for url in map(_url, urls)]
    if len({each.id for each in asked}) < len(asked):
        raise Usage(f"{', '.join(urls)}: two of them say that they are the same replica.")
    return asked


def _url(text: str) -> str:
    """The URL of a replica, also by HOST:PORT, as it is compared. Raises Usage."""
    if (url := url_of(text)) is None:
        raise Usage(f"{text!r} must be a replica's URL, as http://127.0.0.1:8004.")
    return url.rstrip("/")
