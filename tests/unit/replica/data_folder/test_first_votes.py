"""The rule of the first vote over random histories of three replicas: starts, stops, lost disks, folders formatted again.

What an answer proves is the real one (`quorate.replica.protocol.witness`); who must have noted a new store is the rule under test. It
is broken when a store votes though another one of the same replica voted before, and some other member has kept its disk
since. Mistakes planted in the rule are caught by the same histories.

So it is where replicas join, become members and leave: one that becomes a member was noted by all others that stay.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import count

import pytest
from msgspec.structs import replace

from quorate.api_specs.messages import Announcement, Testimony
from quorate.replica.protocol.witness import Witness, contradiction, seen
from quorate.timestamps.timestamp import ZERO

REPLICAS = ("r1", "r2", "r3")
HISTORIES = 1500
STEPS = 40
JOINERS = ("r4", "r5", "r6")
CHANGING_STEPS = 120


@dataclass
class Disk:
    """One store: its birth, whether it has voted, and what it noted of the others."""

    born: str
    made_at: int
    may_vote: bool = False
    witnesses: dict[str, Witness] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """How many others must have noted a new store; whether a word counts that was not noted; what a word proves."""

    needed: int = len(REPLICAS) - 1
    notes: bool = True
    against: Callable[[Announcement, str, Testimony], str | None] = contradiction


def without_births(mine: Announcement, witness: str, testimony: Testimony) -> str | None:
    return contradiction(mine, witness, replace(testimony, born=mine.born))


def named_is_enough(mine: Announcement, witness: str, testimony: Testimony) -> str | None:
    return contradiction(replace(mine, is_new=False), witness, testimony)


class Broken(Exception):
    """A store votes that must not."""


class World:
    """The replicas of one history. All stores of a replica have the id that the document names, or (`renamed`) new ones."""

    def __init__(self, seed: int, rule: Rule, *, renamed: bool) -> None:
        self.draw = random.Random(seed)
        self.rule = rule
        self.renamed = renamed
        self.births = count(1)
        self.now = 0
        self.disks = {replica: self.formatted() for replica in REPLICAS}
        self.up: set[str] = set()
        self.voted: dict[str, list[tuple[str, int]]] = {replica: [] for replica in REPLICAS}

    def formatted(self) -> Disk:
        return Disk(f"b{next(self.births)}", self.now)

    def run(self) -> int:
        """How many stores voted for the first time. Raises Broken."""
        for self.now in range(1, STEPS):
            replica = self.draw.choice(REPLICAS)
            match self.draw.choice(("start", "start", "stop", "ask", "ask", "ask", "lose")):
                case "start":
                    self.up.add(replica)
                case "stop":
                    self.up.discard(replica)
                case "lose" if replica not in self.up and self.draw.random() < 0.2:
                    self.disks[replica] = self.formatted()
                case "ask" if replica in self.up:
                    self.ask(replica)
        return sum(map(len, self.voted.values()))

    def ask(self, replica: str) -> None:
        mine = self.disks[replica]
        store = mine.born if self.renamed else replica
        told = Announcement(
            "hash", replica, store, ZERO, named=True, born=mine.born, is_new=not mine.may_vote
        )
        noted = 0
        for other in self.up - {replica}:
            witnesses = self.disks[other].witnesses
            known = witnesses.get(replica, Witness("", ZERO))
            if (
                self.rule.against(told, other, Testimony(known.store, known.clock, born=known.born))
                is not None
            ):
                return
            if self.rule.notes:
                witnesses[replica] = seen(witnesses.get(replica), told)
            noted += 1
        if not mine.may_vote and noted >= self.rule.needed:
            mine.may_vote = True
            self.check(replica, mine)

    def check(self, replica: str, mine: Disk) -> None:
        for born, at in self.voted[replica]:
            kept = [other for other in REPLICAS if other != replica and self.disks[other].made_at <= at]
            if born != mine.born and kept:
                raise Broken(f"{replica} votes from {mine.born} after {born}, and {kept} had seen it")
        self.voted[replica].append((mine.born, self.now))


def first_votes(rule: Rule, *, renamed: bool) -> list[int]:
    return [World(seed, rule, renamed=renamed).run() for seed in range(HISTORIES)]


@pytest.mark.parametrize("renamed", [False, True])
def test_a_store_made_anew_never_votes_while_a_member_of_then_has_its_disk(renamed: bool) -> None:
    votes = first_votes(Rule(), renamed=renamed)
    assert sum(each == len(REPLICAS) for each in votes) > HISTORIES / 10, "whole clusters come to vote"


@pytest.mark.parametrize(
    ("rule", "renamed"),
    [
        pytest.param(Rule(needed=1), False, id="one-witness-is-enough"),
        pytest.param(Rule(notes=False), False, id="a-word-counts-that-was-not-noted"),
        pytest.param(Rule(against=without_births), False, id="the-same-id-is-the-same-store"),
        pytest.param(Rule(against=named_is_enough), True, id="a-new-id-in-the-document-is-enough"),
    ],
)
def test_a_planted_mistake_is_caught(rule: Rule, renamed: bool) -> None:
    with pytest.raises(Broken):
        first_votes(rule, renamed=renamed)


@dataclass(frozen=True)
class Admission:
    """How many must have noted the store of one that becomes a member, of so many that stay; whose store may not be made anew; whether the one that
    was noted is remembered then."""

    needed: Callable[[int], int] = lambda staying: staying
    holds_for: Callable[[str, Collection[str]], bool] = lambda replica, members: replica in members
    keeps: bool = True


class Changing(World):
    """Replicas join a cluster whose first members have voted, become members, in the place of one or of none, and leave."""

    def __init__(self, seed: int, admission: Admission) -> None:
        super().__init__(seed, Rule(), renamed=False)
        self.admission = admission
        self.since = dict.fromkeys(REPLICAS, 0)
        """When each became a member, of those that are."""
        self.joiners = list(JOINERS)
        self.admitted = 0
        self.up |= {*REPLICAS}
        for _ in range(2):
            for replica in REPLICAS:
                self.ask(replica)

    def run(self) -> int:
        """How many became members. Raises Broken."""
        for self.now in range(1, CHANGING_STEPS):
            replica = self.draw.choice([*self.disks])
            match self.draw.choice(("start", "start", "stop", "ask", "ask", "ask", "lose", "join", "admit")):
                case "start":
                    self.up.add(replica)
                case "stop":
                    self.up.discard(replica)
                case "lose" if replica not in self.up:
                    self.disks[replica] = self.formatted()
                case "ask" if replica in self.up:
                    self.ask(replica)
                case "join" if self.joiners:
                    self.disks[self.joiners.pop(0)] = self.formatted()
                case "admit" if replica in self.up and replica not in self.since:
                    self.admit(replica)
        return self.admitted

    def ask(self, replica: str) -> None:
        mine, is_member = self.disks[replica], replica in self.since
        told = Announcement("hash", replica, replica, ZERO, born=mine.born, is_new=not mine.may_vote)
        heard: list[str | None] = []
        for other in (self.up & self.since.keys()) - {replica}:
            witnesses = self.disks[other].witnesses
            known = witnesses.get(replica, Witness("", ZERO))
            heard.append(contradiction(told, other, Testimony(known.store, known.clock, born=known.born)))
            holds = self.admission.holds_for(replica, self.since)
            witnesses[replica] = seen(witnesses.get(replica), told, is_member=holds)
        is_vouched_for = len(heard) == len(self.since) - 1 and not any(heard)
        if is_member and not mine.may_vote and is_vouched_for:
            self.vote(replica, mine)

    def admit(self, replica: str) -> None:
        """If enough have noted its store. A member may leave at once, whether it runs or not."""
        mine, leaves = self.disks[replica], self.draw.choice([*self.since, None])
        staying = self.since.keys() - {leaves}
        noted = [each for each in staying if self.noted(each, replica) == mine.born]
        if len(noted) < self.admission.needed(len(staying)):
            return
        if leaves is not None:
            del self.since[leaves], self.disks[leaves]
            self.up.discard(leaves)
        self.since[replica] = self.now
        self.admitted += 1
        for each in staying:
            if not self.admission.keeps or self.noted(each, replica) != mine.born:
                self.disks[each].witnesses.pop(replica, None)
        self.vote(replica, mine)

    def noted(self, by: str, replica: str) -> str:
        return self.disks[by].witnesses.get(replica, Witness("", ZERO)).born

    def vote(self, replica: str, mine: Disk) -> None:
        mine.may_vote = True
        self.check(replica, mine)

    def check(self, replica: str, mine: Disk) -> None:
        voted = self.voted.setdefault(replica, [])
        for born, at in voted:
            kept = [
                other
                for other, since in self.since.items()
                if other != replica and max(since, self.disks[other].made_at) <= at
            ]
            if born != mine.born and kept:
                raise Broken(f"{replica} votes from {mine.born} after {born}, and {kept} had seen it")
        voted.append((mine.born, self.now))


def admissions(admission: Admission) -> list[int]:
    return [Changing(seed, admission).run() for seed in range(HISTORIES)]


def test_nor_does_one_of_a_replica_that_joined_while_one_that_stayed_has_its_disk() -> None:
    admitted = admissions(Admission())
    assert sum(admitted) > HISTORIES / 2, "members come and go"


@pytest.mark.parametrize(
    "admission",
    [
        pytest.param(Admission(needed=lambda _: 1), id="noted-by-one-is-enough"),
        pytest.param(Admission(needed=lambda staying: staying - 1), id="noted-by-all-but-one-is-enough"),
        pytest.param(Admission(holds_for=lambda *_: False), id="a-members-store-may-be-made-anew"),
        pytest.param(Admission(keeps=False), id="what-was-noted-is-forgotten-when-it-becomes-a-member"),
    ],
)
def test_a_mistake_planted_in_who_becomes_a_member_is_caught(admission: Admission) -> None:
    with pytest.raises(Broken):
        admissions(admission)
