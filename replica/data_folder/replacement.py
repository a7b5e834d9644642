"""A new store for a replica that lost its own, made from the stores of all the others while nothing runs.

Why it is safe: what was decided or complete is stored by a final quorum. The lost replica was one member of it; each
final quorum with more votes than it alone has left a copy with a survivor, and the new store takes the union. Promises
and fences need no copy from the lost one: the new store's id changes the cluster file's hash, so every message of an
operation begun before is refused. Only what a final quorum of the lost replica alone held is gone: `quorate.api_specs.configuration.loses` names it.
The new store bears witness from the start: it notes how far each of the others has come.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...adts.types.catalogue import adt_of, may_delete
from ...api_specs.cluster import ClusterDocument, checked
from ...api_specs.configuration import in_force
from ...api_specs.messages import Announcement, Row, Testimony
from ...gc.collection import may_end
from ...timestamps.timestamp import INFINITY, ZERO, Timestamp
from ..protocol.log import (
    NOT_RESERVED,
    Effect,
    Log,
    MarkComplete,
    ObjectState,
    PutEvent,
    PutRows,
    PutState,
    Reservation,
)
from ..protocol.witness import Witness, contradiction
from ..store.store import Store
from .identity import FolderRefused, Identity, format_store, open_folder, refuse_store, whole_or_removed

PAGE: Final = 1000
"""Objects, or rows, read at a time; the new store commits after each page of objects."""


def in_force_in(document: ClusterDocument, folders: Mapping[str, Path]) -> ClusterDocument:
    """The document with the latest configuration that a store in these folders notes, by replica. Raises FolderRefused."""
    with ExitStack() as stack:
        opened = [
            open_source(stack, document, replica, path, may_be_restored=True)
            for replica, path in folders.items()
        ]
        return latest_of(document, [source for _, source in opened])


def latest_of(document: ClusterDocument, sources: Iterable[Store]) -> ClusterDocument:
    """The document with the latest configuration that one of these stores notes."""
    found = [source.document_in_force(document) for source in sources]
    return max([document, *found], key=lambda each: each.number)


def with_store(document: ClusterDocument, replica_id: str, store: str) -> ClusterDocument:
    """The document with another store id for the replica."""
    replicas = tuple(
        replace(replica, store=store) if replica.id == replica_id else replica
        for replica in document.replicas
    )
    return checked(replace(document, replicas=replicas))


def make_replacement(
    old: ClusterDocument, new: ClusterDocument, replica_id: str, folder: Path, others: Mapping[str, Path]
) -> int:
    """Fill a new store in `folder` for the replica from the folders of all `others`; returns the number of objects.

    `new` is `old` with the new store's id. Nothing may run: every folder is locked meanwhile. Raises FolderRefused, also
    when a folder is missing, for a replica left out may hold the only other copy. Among `others` may be a folder of the
    replica itself, restored from a backup: it brings back what its lost store alone had held.
    """
    with ExitStack() as stack:
        opened = {
            other: open_source(stack, old, other, path, may_be_restored=other == replica_id)
            for other, path in sorted(others.items())
        }
        sources = {other: source for other, (_, source) in opened.items()}
        latest = latest_of(old, sources.values())
        _refuse_missing(latest, replica_id, others)
        _refuse_forgetful(opened, replica_id)
        refuse_store(folder, old, replica_id)
        format_store(folder, new, replica_id)
        _, target = open_source(stack, new, replica_id, folder)
        stack.enter_context(whole_or_removed(folder))  # It is locked by now: no replica has it.
        objects = fill(target, sources, latest, current=sources.keys() - {replica_id})
        for other, (identity, source) in opened.items():
            if other != replica_id:
                target.others.put_witness(other, Witness(identity.store, source.clock, identity.born))
        target.note_configuration(in_force(new, latest))
        target.commit()
        return objects


def _refuse_missing(document: ClusterDocument, replica_id: str, others: Mapping[str, Path]) -> None:
    """The members may have changed while the cluster ran: then all of those count that the stores know of, and no others."""
    known = f"configuration {document.number}, with members {', '.join(document.votes)}"
    if missing := sorted(document.votes.keys() - others.keys() - {replica_id}):
        raise FolderRefused(
            f"the folders of all other replicas are needed; {', '.join(missing)} is missing ({known})"
        )
    if left := sorted({replica_id, *others} - document.votes.keys()):
        raise FolderRefused(
            f"{', '.join(left)} is no member of {known}: leave it out, and use the cluster file of now (`quorate configuration` prints it)"
        )


def _refuse_forgetful(opened: Mapping[str, tuple[Identity, Store]], replica_id: str) -> None:
    """What the members' stores have seen of each other speaks against one that is an old copy, or was made anew: acknowledged
    data may be missing in it, as in one that is left out."""
    members = {other: each for other, each in opened.items() if other != replica_id}
    for other, (identity, source) in members.items():
        mine = Announcement("", other, identity.store, source.clock, named=True, born=identity.born)
        for witness, (_, its) in members.items():
            known = its.others.witness(other)
            if known is None:
                continue
            sentence = contradiction(mine, witness, Testimony(known.store, known.clock, born=known.born))
            if sentence is not None:
                raise FolderRefused(sentence)


def open_source(
    stack: ExitStack, document: ClusterDocument, replica_id: str, path: Path, *, may_be_restored: bool = False
) -> tuple[Identity, Store]:
    """The identity of the folder's store, and the store; `stack` closes them. Raises FolderRefused."""
    opened = open_folder(path, document, replica_id, is_source=may_be_restored)
    stack.callback(opened.close)
    if opened.database is None:
        raise FolderRefused(f"{path} holds no store either: {opened.lost}")
    store = Store(opened.database)
    stack.callback(store.close)
    if opened.lost is not None:
        raise FolderRefused(f"{path}: {opened.lost}")
    return opened.identity, store


def fill(
    target: Store, sources: Mapping[str, Store], document: ClusterDocument, *, current: Collection[str] = ()
) -> int:
    """Put into an empty store, and commit, all that the sources (by replica) hold; the number of objects. `current`: those that are no backups."""
    target.raise_floor(max(source.floor() for source in sources.values()))
    objects = 0
    for name in _names(sources.values()):
        held = [
            source for source in relevant(name, sources, document, current) if source.state(name) is not None
        ]
        if not held:
            continue
        target.apply(union(name, held))
        objects += 1
        if objects % PAGE == 0:
            target.commit()
    _fill_reservations(target, list(sources.values()), [sources[id] for id in sorted(current)])
    target.commit()
    return objects


def _fill_reservations(target: Store, sources: Sequence[Store], current: Sequence[Store]) -> None:
    """Under each key that some source holds, what a front end would go on from that asks them all."""
    for source in sources:
        after = 0
        while page := source.held.page(after, PAGE):
            after = page[-1][0]
            for _, digested, _ in page:
                if target.held.at(digested) == NOT_RESERVED:
                    held, now = ([each.held.at(digested) for each in stores] for stores in (sources, current))
                    target.put_held(digested, agreed(held, now))
            target.commit()


def agreed(held: Sequence[Reservation], current: Sequence[Reservation]) -> Reservation:
    """What was held under the highest ballot, under the highest promise, so that every new store has the same. `current`: those that are of no backup.

    Where all that was held was the first to come, either all held the same, or nothing was agreed: then the new store holds nothing, or a repeat would
    go on from what an operation had asked that was told that it certainly did nothing. Backups show no such thing: one lacks what came after it,
    though all had agreed; so they count only where there is nothing else.
    """
    latest = max(held, key=lambda each: (each.ballot, [entry.t for entry in each.entries]))
    promised = max(each.promised for each in held)
    if latest.ballot == ZERO and current:
        latest = current[0]
        if not latest.entries or any(each.entries != latest.entries for each in current):
            return Reservation(promised)
    return Reservation(promised, promised, latest.entries)


class _Setting(NamedTuple):
    """What may have set a value: of what lies in a log, and of what was decided; and what ends an object."""

    stored: tuple[str, ...]
    decided: tuple[str, ...]
    ends: str


_KEY: Final = _Setting(("Put/Ok",), ("Put/Ok", "PutIfAbsent/Ok", "Cas/Ok"), "Delete/Ok")
_OWN: Final = _Setting(("Blind/Ok",), ("Blind/Ok", "Call/Ok"), "Call/Ok")


def relevant(
    name: str, sources: Mapping[str, Log], document: ClusterDocument, current: Collection[str] = ()
) -> list[Log]:
    """The sources to go by: the `current` ones, for stores of one moment never contradict each other, and every backup but those in which lies
    what was deleted, and forgotten, since."""
    return [
        source
        for id, source in sources.items()
        if id in current or not may_end(adt_of(name)) or not _was_forgotten(name, id, sources, document)
    ]


def _was_forgotten(name: str, id: str, sources: Mapping[str, Log], document: ClusterDocument) -> bool:
    """Whether what this source has of a dictionary's key was deleted, or of an object of one's own type came to nothing, and was forgotten, before
    some others were made.

    Who forgot a key has a floor above all that was in it, and so has what he hears of the key later. So may have who never had it. When those with
    such a floor hold a final quorum of what ends it, and all others none of what may have set the value, one of them had what was complete, and
    forgot it; that takes an end which all have held. What is not newer, though above a floor, may be the same: a put that was fenced is decided later.
    """
    if (newest := _newest(sources[id], name)) is None:
        return False
    later = [other for other, source in sources.items() if other != id and _is_later(source, name, newest)]
    choice = document.choice_of(name)
    others = choice.votes.keys() - set(later)
    setting = _KEY if may_delete(adt_of(name)) else _OWN
    state = sources[id].state(name)
    is_decided = state is not None and state.summary.horizon > ZERO
    may_have_set = setting.decided if is_decided else setting.stored
    can_have_set = any(choice.final_of(each).is_met_by(others) for each in may_have_set)
    return choice.final_of(setting.ends).is_met_by(later) and not can_have_set


def _is_later(source: Log, name: str, newest: Timestamp) -> bool:
    """Whether all that the source has of the key, or would take in, is newer than that, and of a later life if that was forgotten."""
    state, held = source.state(name), _newest(source, name)
    floor = source.floor() if state is None else state.floor
    return floor >= newest and (held is None or held > newest)


def _newest(source: Log, name: str) -> Timestamp | None:
    """The highest timestamp of a value that the source has of a key; None when it has none, though it may have promised something since it forgot
    the key."""
    state = source.state(name)
    newest = ZERO if state is None else max(source.below(name, INFINITY) or ZERO, state.summary.horizon)
    return newest if newest > ZERO else None


def _names(sources: Collection[Store]) -> Iterator[str]:
    """Every name that some source knows, once, in order."""
    after = ""
    while True:
        pages = [source.names("", after, PAGE) for source in sources]
        ends = [page[-1] for page in pages if len(page) == PAGE]
        upto = min(ends, default=None)
        known = sorted({name for page in pages for name in page if upto is None or name <= upto})
        yield from known
        if upto is None:
            return
        after = upto


def union(name: str, sources: Collection[Log]) -> Iterator[Effect]:
    """All that the sources hold of one object. What was consumed lately is part of it: who repeats an operation finds there that it was
    done."""
    state = merged([state for source in sources if (state := source.state(name)) is not None])
    yield PutState(state)
    events = dict(event for source in sources for event in source.events(name))
    yield from (PutEvent(name, t, event) for t, event in sorted(events.items()))
    present: set[Timestamp] = set()
    for source in sources:
        for row in _rows(source, name):
            if row.entry.t not in present:
                present.add(row.entry.t)
                yield PutRows(name, (row.entry,))
    complete = {row.entry.t for source in sources for row in _rows(source, name) if row.complete}
    yield MarkComplete(name, tuple(sorted(complete)))


def _rows(source: Log, name: str) -> Iterator[Row]:
    above = ZERO
    while page := source.rows(name, above, PAGE):
        yield from page
        above = page[-1].entry.t


def merged(states: Sequence[ObjectState]) -> ObjectState:
    """The highest of each promise, and the summary of the highest ballot: what an initial quorum of all would read. The lost one alone may have been
    fenced for that summary: what others never had must not be stored below its horizon."""
    accepted = max(states, key=lambda state: state.accepted)
    committed = max(states, key=lambda state: state.committed)
    return ObjectState(
        name=accepted.name,
        fence=max(accepted.summary.horizon, *(state.fence for state in states)),
        promised=max(state.promised for state in states),
        accepted=accepted.accepted,
        summary=accepted.summary,
        committed=committed.committed,
        horizon=committed.horizon,
        collected=max(state.collected for state in states),
        floor=max(state.floor for state in states if state.accepted == accepted.accepted),
        made_upto=accepted.summary.horizon,
    )
