"""Operations that observe: read and items. Pure.

An answer must rest on what is known to be stored by a final quorum, or a later one may go back in time; what is not known
to be is written back first (DESIGN, "Observe").
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count
from typing import Final

from ....adts import cell
from ....adts.log import Value
from ....adts.specification import Kind
from ....adts.types.catalogue import adt_of, read_word
from ....api_specs.messages import Collect, Collected, Scan, Scanned
from ....api_specs.weights import weight
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import Quorum
from ....timestamps.timestamp import INFINITY, ZERO, Timestamp
from ..core.log_cache import LogCache, shown_together
from ..core.rounds import SOON_S, Event, Expired, Gathering, Task
from ..core.values import Done, Items, Listed, Read
from ..decisions.read_window import CELL_ROWS
from ..decisions.transitions import ConfirmCommand
from .blind import Blind
from .context import Machine, OutcomeSteps, decide, pause, wait_until_passed

Version = tuple[Timestamp, Value | None]

LOOKS_FREE: Final = 4
"""Looks at a whole dictionary before keys that keep changing are read by themselves."""
MOVING_MAX: Final = 4
"""So many of them: each is read by itself."""
PAGE_OBJECTS: Final = 200
PAGE_BYTES: Final = 1 << 20
"""A page of a dictionary ends where a replica has shown so much."""
KEYS_AT_ONCE: Final = 100
"""Keys that are judged in one turn: others wait meanwhile."""


def collect(
    name: str,
    task: Task,
    machine: Machine,
    needed: Quorum,
    *,
    limit: int = CELL_ROWS,
    payload: bool = True,
    to_first: bool = False,
) -> Generator[float, Event, frozenset[str]]:
    """A fresh look at whole logs by a quorum of `needed`, or, `to_first`, until one shows an entry; nothing is promised. Returns who
    answered. It begins again where something was thrown away meanwhile."""
    cache, choice = machine.cache_of(name), machine.choice_of(name)
    lives, whole = -1, frozenset[str]()
    while lives != cache.lives:
        lives = cache.lives
        round_ = Gathering(
            task,
            lambda replica: look_at(cache, replica, limit, payload=payload),
            choice.votes,
            name,
            None if to_first else needed.is_met_by,
        )
        whole = yield from _whole(round_, needed, cache if to_first else None)
    cache.check_decided(choice.final_of_kind(Kind.DECIDE))
    return whole


def _whole(
    round_: Gathering, needed: Quorum, to_first_in: LogCache | None
) -> Generator[float, Event, frozenset[str]]:
    """Who has shown its log to the end, once they are a quorum; or a reply has come, and there is an entry in the log cache, if one is given."""
    whole: set[str] = set()
    heard: set[str] = set()

    def is_enough() -> bool:
        heard.update(round_.replies)
        for replica in round_.replies.keys() - whole:
            reply = round_.replies[replica]
            assert isinstance(reply, Collected)
            if is_whole(reply):
                whole.add(replica)
            else:
                round_.again(replica)
        has_shown_one = to_first_in is not None and bool(heard) and to_first_in.has_entries
        return needed.is_met_by(whole) or has_shown_one

    yield from round_.wait(is_enough)
    return frozenset(whole)


class Looks:
    """The looks of one operation, which are to agree. At its deadline it says whether they were answered and never agreed."""

    def __init__(self, name: str, task: Task) -> None:
        self._name: Final = name
        self._task: Final = task
        self._begun_s = self._last_s = task.now.mono_s
        self._number = 0

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """One look; Expired names no replica when it came too late, and not when replicas answered none for long."""
        try:
            yield
        except Expired as expired:
            is_quick = self._task.now.mono_s - self._last_s <= self._last_s - self._begun_s
            if expired.is_refused or not is_quick:
                raise
            raise Expired(self._why(), expired.answered) from None
        self._number += 1
        self._last_s = self._task.now.mono_s

    def _why(self) -> str:
        if self._number == 1:
            return f"{self._name} was looked at once, and no time was left for a second look that agrees: give it more"
        return f"{self._name} changed during each of {self._number} looks at it: give it more time, or look at a quieter moment"


def look_at(cache: LogCache, replica: str, limit: int = CELL_ROWS, *, payload: bool = True) -> Collect:
    """What this replica knows of the object beyond what the log cache shows."""
    return Collect(cache.name, window=cache.window(replica, limit, payload), known=cache.ballot)


def is_whole(reply: Collected) -> bool:
    """Whether it shows its log to the end."""
    return not reply.more and reply.upto == INFINITY


def word_of(operation: Read) -> str:
    """What the operation is called in the object's data type."""
    return read_word(adt_of(operation.object))


def read(
    operation: Read, task: Task, machine: Machine, answered: frozenset[str] | None = None
) -> OutcomeSteps:
    """The newest value that an initial quorum shows, once it is known to be stored by a final quorum.

    And once its timestamp has passed: a write that begins after this read must get a higher one. Its own writer waits
    for that before it returns, but a reader may see the value earlier. `answered`: an initial quorum has shown its logs just
    now.
    """
    word = word_of(operation)
    if machine.choice_of(operation.object).is_weak:
        return (yield from _read_weakly(operation.object, word, task, machine))
    (timestamp, value), answered = yield from _read_settled(operation.object, word, task, machine, answered)
    yield from wait_until_passed(timestamp, task, machine, answered)
    return Done(value, f"{word}/Ok", answered)


def _read_weakly(name: str, word: str, task: Task, machine: Machine) -> OutcomeSteps:
    """The newest value that this front end knows of, once a replica has shown what it knows: it may not be stored by a final quorum, and a newer
    one may be."""
    answered = yield from collect(name, task, machine, machine.choice_of(name).initial_of(word))
    return weakly_read(machine.cache_of(name), word, answered)


def weakly_read(cache: LogCache, word: str, answered: frozenset[str]) -> Done:
    """See `_read_weakly`."""
    _, value, _ = cell.current(cache.summary, cache.by_id())
    return Done(value, f"{word}/Ok", answered, is_weak=True)


def _read_settled(
    name: str, operation: str, task: Task, machine: Machine, answered: frozenset[str] | None = None
) -> Generator[float, Event, tuple[Version, frozenset[str]]]:
    """The newest version that an initial quorum shows, once it is known to be stored by a final quorum; who answered.

    That version and no other: the log cache, which all operations share, may know of a newer one by then.
    """
    cache = machine.cache_of(name)  # Held: the front end forgets what is idle and nobody holds.
    while True:
        if answered is None:
            answered = yield from collect(name, task, machine, machine.choice_of(name).initial_of(operation))
        settled = yield from _settled(cache, task, machine)
        if settled is not None:
            return settled, answered
        answered = None
        yield from decide(name, ConfirmCommand(), task, machine)


def settled_version(cache: LogCache, choice: QuorumChoice) -> Version | None:
    """The current version, if it is known to be stored by a final quorum."""
    timestamp, value, source = cell.current(cache.summary, cache.by_id())
    if source is None:
        return (timestamp, value) if cache.is_decided else None
    if not cache.is_complete(source, choice.final_of_kind(Kind.BLIND)):
        return None
    source.complete = True
    cache.drop_superseded(timestamp)
    return timestamp, value


def _settled(cache: LogCache, task: Task, machine: Machine) -> Generator[float, Event, Version | None]:
    """The same, or the current version once it is written back, if it can be as it is."""
    if (version := settled_version(cache, machine.choice_of(cache.name))) is not None:
        return version
    name = cache.name
    timestamp, value, source = cell.current(cache.summary, cache.by_id())
    if source is None:
        return None
    stored = yield from Blind(name, task, machine).write_back(source.entry)
    return (timestamp, value) if stored else None


def items(operation: Items, task: Task, machine: Machine) -> OutcomeSteps:
    """A clean double collect: two looks at all keys that show the same settled values bound them at a moment between.

    (Afek et al., "Atomic Snapshots of Shared Memory", 1993, section 3: a collect that nothing changed under is one.)
    After some looks in vain, the few keys that keep changing are read by themselves between two looks at all others: these
    stand still meanwhile, so what was read between is of a moment at which they were as both looks show them.
    Where a page ends, the first look says.
    """
    page = _Page(operation)
    if machine.choice_of(page.any_key).is_weak:
        return (yield from _list_weakly(page, task, machine))
    before: dict[str, Version] | None = None
    between: dict[str, Version] | None = {}
    settled: dict[str, Version] = {}
    moving: frozenset[str] = frozenset()
    looks = Looks(operation.object, task)
    for number in count():
        with looks.under_way():
            found, answered = yield from _scan(page, task, machine)
        # One that was never set is known where it was asked for in vain, and forgotten again: nothing changes by that. Nor is it in doubt: whoever
        # had nothing accepted, under whatever ballot, has seen that nothing was decided before.
        now = {
            name: version for name, (version, _) in found.items() if name not in moving and version[0] > ZERO
        }
        doubtful = {name for name in now if not found[name][1] and settled.get(name) != now[name]}
        if now == before and not doubtful and between is not None:
            return (yield from _all_items(page, now | between, task, machine, answered))
        if before is not None:
            machine.count("collected again")
        if number >= LOOKS_FREE:
            moving = _still_moving(moving, doubtful, before, now)
        still = {name: version for name, version in now.items() if name not in moving}
        before = None if doubtful - moving else still
        for name in sorted(doubtful - moving):
            settled[name], _ = yield from _read_settled(name, "Get", task, machine)
        between = yield from _at_one_moment(moving, task, machine)
    raise AssertionError("it looks until the deadline")


class _Page:
    """The keys that are listed: those that begin with `prefix` (full names, as all here), after `after`, up to `last`, once that is known."""

    def __init__(self, operation: Items) -> None:
        self.dictionary: Final = operation.object
        self.prefix: Final = f"{operation.object}/{operation.prefix}"
        self.after: Final = f"{operation.object}/{operation.after}" if operation.after else ""
        self.most: Final = operation.most
        self.last: str | None = None if operation.most else ""

    @property
    def any_key(self) -> str:
        """One that has the quorums of all."""
        return f"{self.dictionary}/any"

    def has_enough(self, shown: Collection[str], shown_bytes: int, newest: str) -> bool:
        """Whether a replica that has more to show, and has shown this, up to `newest`, need not go on."""
        if self.last is None:
            return len(shown) >= self.most or shown_bytes >= PAGE_BYTES
        return bool(self.last) and newest >= self.last

    def end(self, partly: Iterable[str]) -> None:
        """The first look is over: the page ends where the first of those has, who have more to show."""
        if self.last is None:
            self.last = min(partly, default="")

    def of(self, shown: dict[str, Collected]) -> dict[str, Collected]:
        """The keys on the page, of those that a replica has shown."""
        last = self.last
        return {name: found for name, found in shown.items() if name <= last} if last else shown

    def listed(self, versions: Mapping[str, Version]) -> Listed:
        """The values of the keys that have one, in the order of the keys: `most` of them at most, for replicas that lack keys, and keys that came after the
        first look, make a page longer."""
        begins = len(self.dictionary) + 1
        values = ((name[begins:], versions[name][1]) for name in sorted(versions))
        found = [(key, value) for key, value in values if value is not None]
        page = found[: self.most] if self.most else found
        return Listed(dict(page), page[-1][0] if len(page) < len(found) else (self.last or "")[begins:])


def _list_weakly(page: _Page, task: Task, machine: Machine) -> OutcomeSteps:
    """What the first replica to answer holds, at no one moment."""
    found, answered = yield from _scan(page, task, machine)
    versions = {name: version for name, (version, _) in found.items()}
    return Done(page.listed(versions), "Items/Ok", answered, is_weak=True)


def _still_moving(
    moving: frozenset[str], doubtful: set[str], before: dict[str, Version] | None, now: dict[str, Version]
) -> frozenset[str]:
    """The keys that changed between looks, as long as they are few; so many that all must be looked at: none."""
    known = now if before is None else before
    changed = {name for name in now.keys() | known.keys() if now.get(name) != known.get(name)}
    found = moving | doubtful | changed
    return found if len(found) <= MOVING_MAX else frozenset()


def _at_one_moment(
    names: frozenset[str], task: Task, machine: Machine
) -> Generator[float, Event, dict[str, Version] | None]:
    """The settled versions of these keys at one moment; None where that cannot be told. A single one is read once."""
    read: list[dict[str, Version]] = []
    for _ in range(1 if len(names) == 1 else 2):
        versions = {}
        for name in sorted(names):
            versions[name], _ = yield from _read_settled(name, "Get", task, machine)
        read.append(versions)
    if names:
        machine.count("moving keys read between looks")
    return read[0] if read[0] == read[-1] else None


def _all_items(
    page: _Page, versions: dict[str, Version], task: Task, machine: Machine, answered: frozenset[str]
) -> OutcomeSteps:
    """The answer, once all its timestamps have passed."""
    newest = max((timestamp for timestamp, _ in versions.values()), default=ZERO)
    yield from wait_until_passed(newest, task, machine, answered)
    return Done(page.listed(versions), "Items/Ok", answered)


Cells = dict[str, tuple[Version, bool]]


def _scan(page: _Page, task: Task, machine: Machine) -> Generator[float, Event, tuple[Cells, frozenset[str]]]:
    """The newest version and whether it is settled, of every key on the page, as an initial quorum shows them."""
    choice = machine.choice_of(page.any_key)
    needed = choice.initial_of("Items")
    shown: dict[str, dict[str, Collected]] = {replica: {} for replica in choice.votes}
    shown_bytes = dict.fromkeys(choice.votes, 0)

    def request(replica: str) -> Scan:
        at_once = min(page.most or PAGE_OBJECTS, PAGE_OBJECTS)
        return Scan(page.prefix, next(reversed(shown[replica]), page.after), at_once)

    round_ = Gathering(task, request, choice.votes)
    whole: set[str] = set()
    partly: dict[str, str] = {}

    def is_enough() -> bool:
        for replica in round_.replies.keys() - whole:
            reply = round_.replies[replica]
            assert isinstance(reply, Scanned)
            shown[replica].update(reply.objects)
            shown_bytes[replica] += sum(weight(collected) for _, collected in reply.objects)
            _check_size(page.dictionary, shown_bytes[replica], machine)
            newest = next(reversed(shown[replica]), "")
            if not reply.more:
                whole.add(replica)
            elif page.has_enough(shown[replica], shown_bytes[replica], newest):
                whole.add(replica)
                partly[replica] = newest
            else:
                round_.again(replica)
        return needed.is_met_by(whole)

    yield from round_.wait(is_enough)
    answered = frozenset(whole)
    page.end(partly.values())
    at_once = min(KEYS_AT_ONCE, machine.limits.page_entries_max)
    cells = yield from _judged({each: page.of(shown[each]) for each in sorted(whole)}, choice, task, at_once)
    return cells, answered


def _judged(
    shown: Mapping[str, dict[str, Collected]], choice: QuorumChoice, task: Task, at_once: int
) -> Generator[float, Event, Cells]:
    """The cells that these replicas have shown, `at_once` in each turn: of many, all others would wait for long.

    Nothing that comes meanwhile is looked at: what is judged is what was shown, and let go of then.
    """
    found: Cells = {}
    for name in dict.fromkeys(chain.from_iterable(shown.values())):
        if found and len(found) % at_once == 0:
            yield from pause(task, task.now.mono_s + SOON_S)
            if task.is_late:
                raise Expired("no time was left to look through what the replicas have shown", shown)
        replies = {replica: keys.pop(name) for replica, keys in shown.items() if name in keys}
        found[name] = _settled_cell(shown_together(name, choice.votes, replies), choice)
    return found


def _check_size(dictionary: str, shown_bytes: int, machine: Machine) -> None:
    """Raises Expired when a replica has shown more of a dictionary than one listing may hold: that is kept in memory, of each
    replica."""
    most = machine.limits.listing_bytes_max
    if shown_bytes > most:
        what = f"{dictionary}, with what was overwritten or deleted lately,"
        detail = f"{what} has more than {most} bytes of keys and values, which is listing_bytes_max"
        raise Expired(detail, is_refused=True, limit="listing-too-large")


def _settled_cell(cache: LogCache, choice: QuorumChoice) -> tuple[Version, bool]:
    cache.check_decided(choice.final_of_kind(Kind.DECIDE))
    timestamp, value, source = cell.current(cache.summary, cache.by_id())
    if source is None:
        return (timestamp, value), cache.is_decided
    return (timestamp, value), cache.is_complete(source, choice.final_of_kind(Kind.BLIND))
