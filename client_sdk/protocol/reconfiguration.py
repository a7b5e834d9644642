"""The steps of a change of the cluster's configuration, from whichever it has to the one that is wanted. Pure: what is to be done comes out, what
came of it goes in.

What is in force next is chosen by a compare-and-set on a register of the cluster itself (`CONFIGURATION`), under the quorums in force now: of two
who want different things at once one wins, and the other goes on from there; and whoever comes after one that vanished finds how far it came, and
does the rest. Each step may be done twice. Must not know how replicas are told, nor time.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from ...adts.log import Value
from ...adts.types.catalogue import CONFIGURATION, adt_of
from ...adts.types.queue import Queue
from ...api_specs.cluster import BadCluster, ClusterDocument, alone, from_json
from ...api_specs.configuration import in_force, keeping_places
from .configurations import (
    NOBODY,
    is_over,
    is_served,
    joint,
    keeps_quorums,
    moved,
    redirected,
    settled,
    taken_back,
    without,
)
from .core.values import LONG, Carry, CompareAndSet, Done, Failed, Operation, Outcome

AGAIN_S: Final = 0.05
"""Between two tries of what did not come to its end."""
PAUSE_S_MAX: Final = 2.0
TOGETHER: Final = 8
"""Objects carried side by side, unless their logs are long: such a log is in memory meanwhile. Fewer cost more processor time each, and more keep callers
waiting for longer."""


class Look(Struct, frozen=True):
    """Have the front end read the register. Answer: `Looked`."""


class Looked(NamedTuple):
    """What came of it, and the configuration that the front end goes by then: replicas may have told it a later one."""

    outcome: Outcome
    here: ClusterDocument


class Perform(Struct, frozen=True):
    """Have the front end run it. Answer: the Outcome."""

    operation: Operation


class CarryAll(Struct, frozen=True):
    """Have the front end run these, side by side. Answer: their outcomes, in order."""

    operations: tuple[Carry, ...]


class Tell(Struct, frozen=True):
    """Tell all members of the configuration, and those of the one before, that it is in force, or else those of `to`; the front end goes by it, too.
    Answer: by replica that answered, which configuration it is in now."""

    document: ClusterDocument
    to: ClusterDocument | None = None


class Ask(Struct, frozen=True):
    """Ask the members of the configuration what they hold. Answer: `Holding` by replica that answered. Without `names`, those of objects may be left out."""

    document: ClusterDocument
    names: bool = True


class Holding(Struct, frozen=True):
    """All objects that a replica holds, in which configuration it is, and how many idempotency keys it holds of before it came there. A new one does
    not vote before the others have noted its `store`: `awaits` are those that have not. `cluster` is the hash of the configuration that it is in."""

    epoch: int
    objects: tuple[str, ...]
    keys: int
    awaits: tuple[str, ...] = ()
    cluster: str = ""
    store: str = ""
    has_voted: bool = False

    def is_joining(self, at: ClusterDocument, wanted: ClusterDocument, replica: str) -> bool:
        """Whether it can become a member, as the one that is wanted under this id: it has joined this cluster, with the store that is named, which never
        voted in another one, and which all others that stay have noted."""
        is_here = self.cluster == at.hash and wanted.stores[replica] in ("", self.store)
        return is_here and not self.has_voted and not wanted.votes.keys() & self.awaits


class _Chosen(NamedTuple):
    """The configuration that the register holds, and how: what is not of the chain, as limits, may have been edited since."""

    text: Value | None
    document: ClusterDocument


class _Overtaken(Exception):
    """Somebody else has brought the change to its end."""


class Wait(Struct, frozen=True):
    """Let about so many seconds pass: up to half as long again, by chance, for others may wait for the same. Answer: None."""

    seconds: float


Wanted = Callable[[ClusterDocument], ClusterDocument]
"""The configuration that somebody wants, by the one in force: another operator may have changed that meanwhile."""
Todo = Look | Perform | CarryAll | Tell | Ask | Wait
Steps = Generator[Todo, Any, Any]


def followed(
    steps: Steps, hear: Callable[[Todo, Any], None], begin: Callable[[Todo], None] = lambda _: None
) -> Steps:
    """The same steps: `begin` is told of each before it is done, `hear` afterwards, with what came of it."""
    answer: Any = None
    while True:
        try:
            todo = steps.send(answer)
        except StopIteration as stop:
            return stop.value
        begin(todo)
        answer = yield todo
        hear(todo, answer)


def change(
    at: ClusterDocument, wanted: Wanted, dead: AbstractSet[str] = NOBODY
) -> Generator[Todo, Any, ClusterDocument]:
    """Bring the cluster to the configuration that is wanted, from `at` or a later one, without these members, which are off and stay off. A change under
    way is brought to its end before, and members move that have other URLs there. Returns what is in force then. Raises BadCluster where the wanted one
    cannot follow, the register cannot hold it, or another operator takes the change back."""
    want = in_place(wanted)
    chosen = yield from _latest(at)
    while (at := chosen.document).former is not None or not is_like(at, want(at)):
        if places := to_move(at, want(at)):
            following = moved(at, places)
        elif (begun := to_begin(at, want(at), dead)) is not None:
            following = begun
            yield from _met(following, at, want(at))
        elif at.former is not None and (gone := _dead_in(at.former, dead) - set(at.declared_dead)):
            following = without(at, gone)
        else:
            with suppress(_Overtaken):
                yield from _carry_over(at)
            following = settled(at)
        before, (_, chosen) = at, (yield from _choose(chosen, following))
        if (
            before.former is not None
            and is_like(before, want(before))
            and is_like(chosen.document, before.former)
            and chosen.document.number == before.number + 1
        ):
            raise BadCluster("another operator has taken the change back")
    return at


def move(at: ClusterDocument, places: Mapping[str, str]) -> Generator[Todo, Any, ClusterDocument]:
    """Have these members be found at these URLs from now on; in the middle of a change, too, which goes on afterwards as before. Returns what is in force
    then. Raises BadCluster where one is no member any more, or was moved elsewhere since `at`, where it was seen, or the URL is another one's."""
    seen, chosen = _placed_in(at), (yield from _latest(at))
    while left := {name: url for name, url in places.items() if chosen.document.urls.get(name) != url}:
        if gone := [name for name in left if name not in chosen.document.votes]:
            raise BadCluster(
                f"{', '.join(gone)} is no member: the members are {', '.join(chosen.document.votes)}"
            )
        placed = _placed_in(chosen.document)
        if elsewhere := [name for name in left if placed[name] > seen.get(name, 0)]:
            name = elsewhere[0]
            raise BadCluster(
                f"{name} was moved to {chosen.document.urls[name]} meanwhile: see where it is, and repeat if it is to move again"
            )
        _, chosen = yield from _choose(chosen, moved(chosen.document, left))
    yield Tell(chosen.document)
    return chosen.document


def _placed_in(document: ClusterDocument) -> dict[str, int]:
    """In which configuration each member was given its URL."""
    return {each.id: each.placed_in for each in document.members}


def in_place(wanted: Wanted) -> Wanted:
    """The same, with members where they are that have moved since it was written down."""
    return lambda at: keeping_places(wanted(at), at)


def to_move(at: ClusterDocument, wanted: ClusterDocument) -> dict[str, str]:
    """The members that are to move, and where; none in the middle of a change."""
    if at.former is not None:
        return {}
    return {each.id: each.url for each in wanted.replicas if at.urls.get(each.id, each.url) != each.url}


def to_begin(at: ClusterDocument, wanted: ClusterDocument, dead: AbstractSet[str]) -> ClusterDocument | None:
    """The configuration in which a change to the one that is wanted begins, from this one, where these members are off and stay off; None where another change is under way, which has to end
    first. It need not, and goes on to the wanted one instead, where a member is dead that was to stay. BadCluster where the wanted one cannot follow."""
    if at.former is None:
        return joint(at, wanted, _dead_in(at, dead))
    gone = _dead_in(at, dead)
    return redirected(at, wanted, gone | _dead_in(at.former, dead)) if gone else None


def _dead_in(document: ClusterDocument, dead: AbstractSet[str]) -> AbstractSet[str]:
    return dead & document.own_votes.keys()


def take_back(
    at: ClusterDocument, number: int | None = None
) -> Generator[Todo, Any, tuple[ClusterDocument, ClusterDocument | None]]:
    """End the change under way, if there is one, with the configuration that was in force before; with `number`, that change alone in which this
    configuration is. Returns what is in force then, and the configuration that took a change back: None where there was none, or it has come to its end
    instead. Raises BadCluster where others stand in for members that were declared dead: what they hold need not be a quorum of the configuration before,
    and the dead would be members again."""
    chosen, back = (yield from _latest(at)), None
    begun = chosen.document.former if number in (None, chosen.document.number) else None
    # The same change, also where it goes on without members declared dead meanwhile; not one that others begin after it.
    while (
        (at := chosen.document).former is not None and begun is not None and at.former.number == begun.number
    ):
        if at.declared_dead and not is_served(at.former, at.survivors):
            raise BadCluster(
                f"the change cannot be taken back, since {', '.join(at.declared_dead)} was declared dead: repeat it, so that it comes to its end; a "
                "member that never comes back is removed or replaced in the middle of it, by `quorate member remove ID --declare-dead ID`"
            )
        before = taken_back(at)
        is_first, chosen = yield from _choose(chosen, before)
        back = before if is_first or _passed(chosen.document, before) else None
    return at, back


def _passed(latest: ClusterDocument, earlier: ClusterDocument) -> bool:
    """Whether that one was chosen: it is the latest, or the one from which that changes."""
    documents = (latest, *([] if latest.former is None else [latest.former]))
    return any(each.number == earlier.number and is_like(each, earlier) for each in documents)


def _choose(chosen: _Chosen, following: ClusterDocument) -> Generator[Todo, Any, tuple[bool, _Chosen]]:
    """Have it follow, unless something else does: whether it certainly did, and what is chosen then."""
    text = Value(msgspec.json.encode(following, order="deterministic").decode())
    outcome = yield Perform(CompareAndSet(CONFIGURATION, chosen.text, text))
    if isinstance(outcome, Failed) and outcome.reason not in ("unavailable", "unknown"):
        raise BadCluster(f"the cluster's own register does not take this configuration: {outcome.detail}")
    latest = yield from _latest(chosen.document)
    if chosen.document.former is not None and latest.document.former is None:
        yield Tell(latest.document, chosen.document)  # Those that have left the cluster, too.
    return isinstance(outcome, Done) and outcome.result is True, latest


def can_begin(both: ClusterDocument, answering: AbstractSet[str]) -> bool:
    """Whether these replicas can bring a change to its end: they hold every quorum of the new configuration, without which nothing would be done, nor
    anybody go back; and they block each of the old one, so that all can be copied that was acknowledged under it."""
    return is_served(both, answering) and is_over(both, answering)


def _met(both: ClusterDocument, at: ClusterDocument, wanted: ClusterDocument) -> Steps:
    """Wait until members answer that can bring it to its end. A new one counts once it can vote there; and each must, since it would never come."""
    new = wanted.votes.keys() - at.votes.keys()
    while True:
        told: Mapping[str, Holding] = yield Ask(wanted, names=False)
        members: Mapping[str, int] = yield Tell(at, at)
        if any(epoch > at.number for epoch in members.values()):
            return  # Another operator was first: nothing will be chosen from here.
        joined = {name for name in new & told.keys() if told[name].is_joining(at, wanted, name)}
        if joined == new and can_begin(both, told.keys() | members.keys()):
            return
        if any(told[name].epoch < at.number for name in new & told.keys()):
            yield Tell(at, wanted)
        yield Wait(AGAIN_S)


def needs(todo: Tell | Ask, names: AbstractSet[str], at: ClusterDocument) -> bool:
    """Whether a change from `at` could not go on after this step as long as these members do not answer."""
    document = todo.document
    others = document.votes.keys() - names
    if document.former is not None:
        return not is_over(document, others)
    if isinstance(todo, Ask):
        return bool(names & document.votes.keys() - at.votes.keys()) or not is_served(document, others)
    is_asked = todo.to == document
    return is_asked and any(quorum.is_met_by(names) for _, quorum in document.asked_quorums())


def is_like(one: ClusterDocument, other: ClusterDocument) -> bool:
    """Whether they differ in nothing but their places in the chain."""
    return _bare(one) == _bare(other)


def _bare(document: ClusterDocument) -> ClusterDocument:
    return replace(alone(document), epoch=UNSET, retired=UNSET)


def _latest(at: ClusterDocument) -> Generator[Todo, Any, _Chosen]:
    """The configuration chosen last; of one that is to stay, a member is in it, and tells the others."""
    while True:
        looked: Looked = yield Look()
        at = max(at, looked.here, key=lambda each: each.number)
        if not isinstance(looked.outcome, Done):
            if at.number:  # Nobody may have been told of the one that this front end goes by.
                yield Tell(at)
            yield Wait(AGAIN_S)
            continue
        text: Value | None = looked.outcome.result
        latest = at if text is None else in_force(at, from_json(msgspec.json.decode(text)))
        if latest.number <= at.number:
            latest = at  # What a replica is in was chosen. The register may have been lost since, with the stores of others.
        if (yield from _is_known(latest)):
            return _Chosen(text, latest)


def _is_known(latest: ClusterDocument) -> Generator[Todo, Any, bool]:
    """Once a member is in it, where it is to stay. False where one is in a later configuration: the front end hears of that when it looks again."""
    while latest.number and latest.former is None:
        told: Mapping[str, int] = yield Tell(latest)
        newest = max((told.get(name, 0) for name in latest.votes), default=0)
        if newest == latest.number:
            return True
        yield Wait(AGAIN_S)
        if newest > latest.number:
            return False
    return True


def _carry_over(both: ClusterDocument) -> Steps:
    """Until whatever was acknowledged under the old configuration is stored by quorums of both, and nothing can be acknowledged under it any more."""
    while True:
        told: Mapping[str, int] = yield Tell(both)
        if any(epoch > both.number for epoch in told.values()):
            raise _Overtaken
        if is_over(both, {replica for replica, epoch in told.items() if epoch == both.number}):
            break
        yield Wait(AGAIN_S)
    repeatable = yield from _carry((yield from _objects(both)))
    if repeatable and _leaving(both):
        # What these dequeues took may be at members alone that leave. Afterwards no repeat can be in time any more.
        yield Wait(both.memory_s)
    pause_s = AGAIN_S
    while not (yield from _keys_are_forgotten(both)):
        yield Wait(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


def _carry(names: Collection[str]) -> Generator[Todo, Any, int]:
    """Others may carry them, too, each with a term that ends those before: who comes to nothing leaves them time. Returns how many dequeues may be
    repeated under their keys."""
    waiting, pause_s, repeatable = [Carry(name, beside_others=True) for name in sorted(names)], AGAIN_S, 0
    while waiting:
        some = [*takewhile(lambda each: each.beside_others, waiting[:TOGETHER])] or waiting[:1]
        outcomes: Sequence[Outcome] = yield CarryAll(tuple(some))
        pairs = [*zip(some, outcomes, strict=True)]
        left = [each for each, outcome in pairs if not isinstance(outcome, Done)]
        alone = [Carry(each.object) for each, outcome in pairs if is_long(outcome)]
        waiting = [*waiting[len(some) :], *left, *alone]
        repeatable += sum(outcome.result for outcome in outcomes if isinstance(outcome, Done))
        if left:
            yield Wait(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX) if left else AGAIN_S
    return repeatable


def is_long(outcome: Outcome) -> bool:
    """Whether an object was not carried beside others, and is carried alone later."""
    return isinstance(outcome, Done) and outcome.event_class == LONG


def _held(both: ClusterDocument, *, names: bool) -> Generator[Todo, Any, Mapping[str, Holding]]:
    """What those hold that have left the old configuration: of replicas whom each of its quorums meets."""
    while True:
        told: Mapping[str, Holding] = yield Ask(both, names)
        if any(each.epoch > both.number for each in told.values()):
            raise _Overtaken
        held = {replica: each for replica, each in told.items() if each.epoch == both.number}
        if is_over(both, held.keys()):
            return held
        yield Wait(AGAIN_S)


def _objects(both: ClusterDocument) -> Generator[Todo, Any, set[str]]:
    """What is to be carried. Where all quorums stay, what one has stored the other meets: only dequeues may be repeated that took what members alone
    hold that leave."""
    are_kept = keeps_quorums(both)
    if are_kept and not _leaving(both):
        return set()
    held = yield from _held(both, names=True)
    names = {name for each in held.values() for name in each.objects}
    return {name for name in names if adt_of(name) == Queue.name} if are_kept else names


def _leaving(both: ClusterDocument) -> set[str]:
    return both.votes.keys() - both.own_votes.keys()


def _keys_are_forgotten(both: ClusterDocument) -> Generator[Todo, Any, bool]:
    """Whether what was agreed on under idempotency keys before is remembered nowhere that counts. It is not carried: whoever repeats such an operation
    under the new configuration alone would have it done once more. What was agreed on is at an old quorum, which meets all who block these."""
    held = yield from _held(both, names=False)
    return is_over(both, {replica for replica, each in held.items() if not each.keys})
