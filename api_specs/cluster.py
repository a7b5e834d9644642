"""The cluster file: the replicas, their votes, the quorum choices, clock settings and limits.

Front ends and replicas compare its hash: two that hold different documents refuse each other, for their quorums need
not meet.
"""

import hashlib
import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, Final, NamedTuple, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from ..adts.specification import Specification
from ..adts.types.catalogue import CONFIGURATION, SPECIFICATIONS, TYPE_PATTERN, adt_of, kept_type, known_types
from ..adts.types.eventual_queue import EventualQueue
from ..adts.types.semiqueue import Semiqueue
from ..quorums.choices.choice import BadChoice, Consistency, Ordering, QuorumChoice
from ..quorums.choices.joint_choice import JointChoice
from ..quorums.choices.system_choice import choice_of_events, choice_of_pair
from ..quorums.systems.tally import Quorum
from .limits import REPLICAS_MAX, VOTES_MAX, Limits
from .outboxes import Outbox, outbox_named
from .patterns import covers, is_met

CHOICES_MAX: Final = 1000
TYPES_MAX: Final = 100
EPOCH_MAX: Final = 1_000_000_000
STANDING_MAX: Final = 20
"""Rules with a fallback."""
LIVE_SETS_MAX: Final = 1000
"""Sets of live members that are tried before a fallback is refused."""
AFTER_S: Final = 10.0
AFTER_S_MIN: Final = 2.0
"""As often as replicas look who is live."""
AFTER_S_MAX: Final = 86_400.0
_ID_CHARS_MAX: Final = 16
_TYPE: Final = re.compile(TYPE_PATTERN)
_CODE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


_WORDS: Final = {
    "Object contains unknown field": "there is no setting",
    "Object missing required field": "this is missing:",
    "Expected": "expected",
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "a text in quotes",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "a table",
    "Invalid enum value": "there is no",
}
"""The decoder's words, and those of who writes a document."""
_VALUES: Final = {"ordering": get_args(Ordering), "consistency": get_args(Consistency)}


class BadCluster(ValueError):
    """A cluster file that cannot be used; the sentence names the place and the remedy."""


class ReplicaInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """A replica: id, base URL, votes, and the identity of its store once it is a member.

    A replica that has a `store` here has voted: if its data folder is empty, it has forgotten its promises.
    """

    id: str
    url: str
    votes: int = 1
    store: str = ""
    moved: int | UnsetType = UNSET
    """The configuration in which the cluster chose its URL while it ran. Left out of the JSON form where it never moved so."""

    @property
    def placed_in(self) -> int:
        """`moved`, 0 where it is left out."""
        return 0 if self.moved is UNSET else self.moved


class Fallback(Struct, frozen=True, forbid_unknown_fields=True):
    """The second choice of a standing rule, and the condition on live members under which it is in force.

    Quorums are adjusted as members fail and come back (Herlihy, "Dynamic Quorum Adjustment for Partitioned Data", ACM TODS 12(2), 1987);
    with majorities of those that are left it is dynamic voting (Jajodia and Mutchler, ACM TODS 15(2), 1990). Words of quorums as in
    `ChoiceRule`. Exactly one of `down` and `live_below` is given.
    """

    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    down: tuple[str, ...] = ()
    """In force while each of these members is down."""
    live_below: int = 0
    """In force while fewer members than that are live."""
    after_s: float = AFTER_S
    """How long the condition must hold, or not hold, before the cluster switches."""
    reads: str = ""
    writes: str = ""
    initials: dict[str, str] = field(default_factory=dict)
    finals: dict[str, str] = field(default_factory=dict)

    def holds(self, members: Collection[str], live: Collection[str]) -> bool:
        """Whether the condition holds where these of the members are live."""
        if self.down:
            return not any(name in live for name in self.down)
        return sum(name in live for name in members) < self.live_below

    @property
    def condition(self) -> str:
        """In words, behind "while"."""
        if self.down:
            return f"{' and '.join(self.down)} {'is' if len(self.down) == 1 else 'are'} down"
        return f"fewer than {self.live_below} members are live"

    def problem(self, votes: Mapping[str, int]) -> str | None:
        """Why it cannot be a rule's where these are the votes of members; None where it can."""
        if bool(self.down) == (self.live_below != 0):
            return 'give either down = ["r4"] or live_below = 4'
        if unknown := [name for name in self.down if name not in votes]:
            return (
                f"down names {', '.join(unknown)}, which is no member: name members, or remove the fallback"
            )
        if len(set(self.down)) < len(self.down):
            return "down names a member twice"
        if self.live_below and not 2 <= self.live_below <= len(votes):
            return f"live_below is {self.live_below}: use 2 to {len(votes)}, the number of members"
        heaviest = sorted(votes.values(), reverse=True)[: max(0, self.live_below - 1)]
        if self.live_below and 2 * sum(heaviest) <= sum(votes.values()):
            return f"live_below is {self.live_below}: fewer members than that hold no majority of votes, and without one nobody can switch"
        if not AFTER_S_MIN <= self.after_s <= AFTER_S_MAX:
            return f"after_s is {self.after_s:g}: use {AFTER_S_MIN:g} to {AFTER_S_MAX:g} seconds"
        return None


class ChoiceRule(Struct, frozen=True, forbid_unknown_fields=True):
    """The quorum choice of all objects whose names match `objects` (shell-style, as `queue/fast-*`).

    Given by `classes`, or by `reads` and `writes`, or by `initials` and `finals`. What is left out of any is filled in.
    """

    objects: str
    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each event class the votes that are read before, and those that must store it after."""
    ordering: Ordering = "clock"
    collect: bool = True
    """False keeps decided events in the logs (for teaching and tracing): such logs grow with history."""
    reads: str = ""
    """A quorum system instead of `classes`, as `r1*r2 + r3*r4`: who is read by operations that depend on something."""
    writes: str = ""
    """Who stores changes; absent: the dual of `reads`, the sets that meet every quorum of it."""
    initials: dict[str, str] = field(default_factory=dict)
    """Who is read before each operation, a quorum system by operation."""
    finals: dict[str, str] = field(default_factory=dict)
    """Who stores each event class, a quorum system by class; an operation alone stands for its normal outcome."""
    consistency: Consistency | UnsetType = UNSET
    """`eventual`: operations that only observe read any one replica, and may miss changes. Left out of the JSON form where it is not given."""

    outbox: bool | UnsetType = UNSET
    """Whether an enqueue is done when one replica has it in its outbox (`quorate.api_specs.outboxes`). Left out of the JSON form where it is not given."""
    exact_empty: bool | UnsetType = UNSET
    """Whether a dequeue of a queue with outboxes is told "empty" only if nothing waits in these either, which all replicas must say. Left out of the
    JSON form where it is not given."""
    fallback: Fallback | UnsetType = UNSET
    """A second choice; with it the rule is a standing rule. Left out of the JSON form where it is not given."""
    fallen_back: bool | UnsetType = UNSET
    """True while the fallback is in force, else left out. The cluster writes it, as part of the configuration in force."""

    @property
    def has_fallen_back(self) -> bool:
        """`fallen_back`, False where it is left out."""
        return self.fallen_back is True

    @property
    def standing(self) -> Fallback | None:
        """`fallback`, None where it is left out."""
        return None if self.fallback is UNSET else self.fallback

    def in_state(self, has_fallen_back: bool) -> "ChoiceRule":
        """The rule with its fallback in force, or its first choice."""
        return replace(self, fallen_back=True if has_fallen_back else UNSET)

    @property
    def promises(self) -> Consistency:
        """`consistency`, atomic where it is left out."""
        return "atomic" if self.consistency is UNSET else self.consistency

    @property
    def has_outboxes(self) -> bool:
        """`outbox`, False where it is left out."""
        return self.outbox is True

    @property
    def has_exact_empty(self) -> bool:
        """`exact_empty`, False where it is left out."""
        return self.exact_empty is True

    def covers(self, adt: str) -> bool:
        """Whether objects of this data type may match."""
        given = self.objects.partition("/")[0]
        return given == adt or (given not in SPECIFICATIONS and fnmatchcase(f"{adt}/", given + "/"))


class ClockSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Clock errors that the operator vouches for, in seconds."""

    replica_error_s: float = 0.0
    """How far a replica's clock may be from true time."""
    front_end_error_s: float | None = None
    """How far a front end's own clock may be from true time; absent: measured against the replicas' clocks. Where this is less than
    `replica_error_s`, a replica's own front end goes by the latter."""
    offset_max_s: float = 2.0
    """A replica refuses new timestamps further than this from its own clock."""


class ClusterDocument(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A whole cluster file. Build it with `parse` (TOML) or `from_json` of `quorate.api_specs.cluster`, which check it."""

    name: str
    replicas: tuple[ReplicaInfo, ...]
    choices: tuple[ChoiceRule, ...] = ()
    clock: ClockSettings = ClockSettings()
    limits: Limits = Limits()
    types: dict[str, str] | UnsetType = UNSET
    """Data types of one's own, by name: where their code is, as `shop.types:Cart`. Left out of the JSON form where there are none."""
    epoch: int | UnsetType = UNSET
    """Which configuration of the cluster it is, counted from 0 (docs/explanation/changing-configurations.md). Left out of the JSON form of the first."""
    old: "ClusterDocument | UnsetType" = UNSET
    """The configuration before, while the cluster changes from it to this one: quorums are those of both. Left out of the JSON form where nothing
    changes."""
    retired: tuple[str, ...] | UnsetType = UNSET
    """Replicas that were members before and are none now; none of them comes back. Left out of the JSON form where there are none."""
    dead: tuple[str, ...] | UnsetType = UNSET
    """While the cluster changes: members of before that an operator has declared dead. They are off, and stay off; `survivors` stand in for them. Left
    out of the JSON form where there are none."""
    given_up: tuple[str, ...] | UnsetType = UNSET
    """While the cluster changes: members with votes of another configuration that it was to come to, until others of that were declared dead. What was
    stored meanwhile may be there, so they are among the `survivors`. Left out of the JSON form where there are none."""

    @property
    def former_members(self) -> tuple[str, ...]:
        """`retired`, empty where it is left out."""
        return () if self.retired is UNSET else self.retired

    @property
    def declared_dead(self) -> tuple[str, ...]:
        """`dead`, empty where it is left out."""
        return () if self.dead is UNSET else self.dead

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """`given_up`, empty where it is left out."""
        return () if self.given_up is UNSET else self.given_up

    @cached_property
    def survivors(self) -> frozenset[str]:
        """Where some members of the configuration before were declared dead, all others of it that have votes, or stand in a quorum system, and those of
        `given_up`; else empty."""
        if self.former is None or not self.declared_dead:
            return frozenset()
        return self.former.voters.union(self.stand_ins).difference(self.declared_dead)

    @cached_property
    def voters(self) -> frozenset[str]:
        """The members of this configuration alone that have votes, or stand in a quorum system of some rule."""
        rules = (*self.choices, ChoiceRule("*"))
        choices = (
            self.choice_by(rule, adt) for rule in rules for adt in filter(rule.covers, self.specifications)
        )
        return frozenset(name for choice in choices for name in choice.voters)

    @property
    def number(self) -> int:
        """`epoch`, 0 where it is left out."""
        return 0 if self.epoch is UNSET else self.epoch

    @property
    def former(self) -> "ClusterDocument | None":
        """`old`, None where it is left out."""
        return None if self.old is UNSET else self.old

    @cached_property
    def own_types(self) -> Mapping[str, str]:
        """`types`, empty where there are none."""
        return {} if self.types is UNSET else self.types

    @cached_property
    def specifications(self) -> Mapping[str, Specification]:
        """The data types whose objects the cluster keeps, by name, as quorums see them."""
        return {name: kept_type(name) for name in (*SPECIFICATIONS, *self.own_types)}

    @cached_property
    def hash(self) -> str:
        """The document's fingerprint: SHA-256 of its canonical JSON form, 64 hexadecimal digits."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    @cached_property
    def own_votes(self) -> dict[str, int]:
        """Votes by replica id, of the members of this configuration alone."""
        return {replica.id: replica.votes for replica in self.replicas}

    @cached_property
    def votes(self) -> dict[str, int]:
        """Votes by replica id. While the cluster changes, those of the configuration before have theirs, too."""
        return self.own_votes if self.former is None else self.former.own_votes | self.own_votes

    @property
    def members(self) -> tuple[ReplicaInfo, ...]:
        """The members, behind those of the configuration before while the cluster changes."""
        return self.replicas if self.former is None else (*self.former.replicas, *self.replicas)

    @cached_property
    def urls(self) -> dict[str, str]:
        """Base URLs by replica id."""
        urls = {replica.id: replica.url for replica in self.replicas}
        return urls if self.former is None else self.former.urls | urls

    @cached_property
    def stores(self) -> dict[str, str]:
        """The ids of stores that it names, by replica id; empty ones where it names none."""
        stores = {replica.id: replica.store for replica in self.replicas}
        return stores if self.former is None else self.former.stores | stores

    @property
    def memory_s(self) -> float:
        """How long ids, keys and the fate of entries are remembered: as long as a repeat may take that begins within the retry window,
        by whichever accepted clock.

        The timestamp that starts it may be from a clock that is behind, the reading that ends it from one ahead.
        """
        return self.limits.repeats_s + 2 * self.clock.offset_max_s

    @cached_property
    def has_outboxes(self) -> bool:
        """Whether any queue has outboxes."""
        return any(rule.has_outboxes for rule in self.choices)

    def outbox(self, object_name: str) -> Outbox | None:
        """The outbox that the object is; None where it is none."""
        if not self.has_outboxes or (found := outbox_named(object_name)) is None:
            return None
        is_there = found.replica in self.votes and self._rule(found.queue).has_outboxes
        return found if is_there and self.outbox(found.queue) is None else None  # An outbox has none itself.

    def matched_by(self, object_name: str) -> str:
        """What patterns of objects are matched with: of a dictionary's key its dictionary, of an outbox its queue, else the object itself."""
        outbox = self.outbox(object_name)
        return outbox.queue if outbox is not None else "/".join(object_name.split("/")[:2])

    def rule_of(self, object_name: str) -> ChoiceRule:
        """The first rule that matches the object; the default without a match, and for the cluster's own register, by which it changes."""
        return ChoiceRule("*") if object_name == CONFIGURATION else self._rule(self.matched_by(object_name))

    def judged_as(self, object_name: str) -> str:
        """The data type that holds of calls on an object: its own, but for a queue with outboxes."""
        if not self.has_outboxes or not (rule := self.rule_of(object_name)).has_outboxes:
            return adt_of(object_name)
        return Semiqueue.name if rule.has_exact_empty else EventualQueue.name

    def _rule(self, matched: str) -> ChoiceRule:
        return next((rule for rule in self.choices if fnmatchcase(matched, rule.objects)), ChoiceRule("*"))

    def choice_of(self, object_name: str) -> QuorumChoice:
        """The quorum choice of an object; majorities where no rule matches. BadChoice where the cluster has no such type."""
        if (outbox := self.outbox(object_name)) is not None:
            return _cached_choice("queue", ((outbox.replica, 1),), _NO_WORDS, "clock", "atomic")
        choice = self.choice_by(self.rule_of(object_name), adt_of(object_name))
        if self.former is None:
            return choice
        return JointChoice(self.former.choice_of(object_name), choice, self.survivors)

    def choice_by(self, rule: ChoiceRule, adt: str) -> QuorumChoice:
        """The quorum choice that a rule gives to objects of a data type: its fallback where that is in force."""
        if adt not in self.specifications:
            raise BadChoice(
                f"the cluster has no data type {adt!r}: the document's [types] name those of one's own"
            )
        fallback = rule.standing if rule.has_fallen_back else None
        given = rule if fallback is None else fallback
        words = _Words(
            tuple(given.classes.items()),
            (given.reads, given.writes),
            tuple(given.initials.items()),
            tuple(given.finals.items()),
        )
        return _cached_choice(adt, tuple(self.own_votes.items()), words, rule.ordering, rule.promises)

    @cached_property
    def standing_rules(self) -> tuple[ChoiceRule, ...]:
        """The rules that have a fallback."""
        return tuple(rule for rule in self.choices if rule.standing is not None)

    def asked_quorums(self) -> Iterator[tuple[ChoiceRule, Quorum]]:
        """All quorums that somebody has to ask, of each rule and data type."""
        for rule in (*self.choices, ChoiceRule("*")):
            for adt in filter(rule.covers, self.specifications):
                yield from ((rule, quorum) for quorum in self.choice_by(rule, adt).asked())


def alone(document: ClusterDocument) -> ClusterDocument:
    """The document without what is said in the middle of a change alone; of one that changes, what it changes to."""
    return replace(document, old=UNSET, dead=UNSET, given_up=UNSET)


def with_states(document: ClusterDocument, states: Mapping[str, bool]) -> ClusterDocument:
    """The document whose standing rules for these objects have fallen back, or not; of one that changes, what it changes to."""
    rules = (
        rule.in_state(states[rule.objects]) if rule.standing is not None and rule.objects in states else rule
        for rule in document.choices
    )
    return replace(alone(document), choices=tuple(rules))


def switch_problem(old: ClusterDocument, new: ClusterDocument, live: Collection[str]) -> str:
    """Why these members alone could not bring a change between the two to its end, in words; empty where they could.

    They must hold all quorums of both: what was stored is copied by them. And nothing may be done under the old one without them.
    """
    others = [name for name in old.votes if name not in live]
    for rule, quorum in old.asked_quorums():
        if not quorum.is_met_by(live):
            return f"live members do not hold all quorums of {_told(rule)} by the choice in force, and could not copy its objects"
        if quorum.is_met_by(others):
            return f"{' and '.join(others)} could still do something alone by the choice in force for {_told(rule)}"
    for rule, quorum in new.asked_quorums():
        if not quorum.is_met_by(live):
            return f"live members do not hold all quorums of {_told(rule)} by the choice to come"
    return ""


def _told(rule: ChoiceRule) -> str:
    return "objects without a rule" if rule == ChoiceRule("*") else rule.objects


class _Words(NamedTuple):
    """The words of a rule that say which quorums, so that choices can be remembered by them."""

    classes: tuple[tuple[str, tuple[int, int]], ...]
    pair: tuple[str, str]
    initials: tuple[tuple[str, str], ...]
    finals: tuple[tuple[str, str], ...]


_NO_WORDS: Final = _Words((), ("", ""), (), ())
"""Majorities."""


@lru_cache(maxsize=CHOICES_MAX)
def _cached_choice(
    adt: str,
    votes: tuple[tuple[str, int], ...],
    words: _Words,
    ordering: Ordering,
    consistency: Consistency,
) -> QuorumChoice:
    specification, kept = kept_type(adt), dict(votes)
    if sum(map(bool, (words.classes, any(words.pair), words.initials or words.finals))) > 1:
        raise BadChoice("give classes, or reads and writes, or initials and finals; not several of these")
    if words.initials or words.finals:
        initials, finals = dict(words.initials), dict(words.finals)
        return choice_of_events(
            specification, kept, initials, finals, ordering=ordering, consistency=consistency
        )
    if not any(words.pair):
        return QuorumChoice(
            specification, kept, dict(words.classes), ordering=ordering, consistency=consistency
        )
    if not words.pair[0]:
        raise BadChoice("writes without reads: give both, or reads alone")
    return choice_of_pair(specification, kept, *words.pair, ordering=ordering, consistency=consistency)


BYTE_ORDER_MARK: Final = "\ufeff"
HAS_MARK: Final = (
    "begins with a byte order mark (U+FEFF), which TOML does not have: save it as UTF-8 without one"
)


def parse(text: str, source: str = "cluster.toml") -> ClusterDocument:
    """The checked document of TOML `text`; BadCluster names `source` and the place."""
    if text.startswith(BYTE_ORDER_MARK):
        raise BadCluster(f"{source} {HAS_MARK}")
    try:
        return _of_user(checked(msgspec.convert(tomllib.loads(text), ClusterDocument)))
    except tomllib.TOMLDecodeError as error:
        raise BadCluster(f"{source} is not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise BadCluster(f"{source}: {_in_words(error)}") from None
    except BadCluster as error:
        raise BadCluster(f"{source}: {error}") from None


def _of_user(document: ClusterDocument) -> ClusterDocument:
    written = (document.epoch, document.old, document.retired, document.dead, document.given_up)
    if any(each is not UNSET for each in written):
        raise BadCluster(
            "epoch, old, retired, dead, given_up: the cluster writes these itself when it changes: leave them out"
        )
    if any(rule.fallen_back is not UNSET for rule in document.choices):
        raise BadCluster(
            "[[choices]] fallen_back: the cluster writes this itself when it switches: leave it out"
        )
    return document


def from_json(data: Any) -> ClusterDocument:
    """The checked document of its JSON form, as `GET /v1/cluster` serves it."""
    try:
        return checked(msgspec.convert(data, ClusterDocument))
    except msgspec.ValidationError as error:
        raise BadCluster(f"cluster file: {_in_words(error)}") from None


msgspec.json.Decoder(ClusterDocument)  # Before there are threads: see `tests/project/test_decoders.py`.


def _in_words(error: msgspec.ValidationError) -> str:
    """What does not fit, in words of who writes a document: where, and what is expected there."""
    what, _, place = str(error).partition(" - at `$")
    for name, words in _WORDS.items():
        what = what.replace(name, words)
    if allowed := _VALUES.get(place.rpartition(".")[2].rstrip("`")):
        what += f": use {' or '.join(allowed)}"
    return f"{place.rstrip('`').lstrip('.')}: {what}" if place else what


def checked(document: ClusterDocument) -> ClusterDocument:
    """`document` itself when all its parts fit together; else BadCluster."""
    if not 0 <= document.number <= EPOCH_MAX:
        raise BadCluster(f"epoch is {document.number}: configurations are counted from 0 to {EPOCH_MAX}")
    if (former := document.former) is not None:
        if former.former is not None or former.number >= document.number:
            raise BadCluster("old: it must be a configuration of before, which changes to none itself")
        checked(former)
    _check_dead(document)
    _check_replicas(document)
    if (problem := document.limits.problem()) is not None:
        raise BadCluster(f"[limits]: {problem}")
    _check_clock(document.clock)
    if len(document.choices) > CHOICES_MAX:
        raise BadCluster(f"[[choices]]: at most {CHOICES_MAX} of them")
    _check_types(document.own_types, is_given=document.types is not UNSET)
    for number, rule in enumerate(document.choices, 1):
        _check_rule(document, number, rule)
    _check_shadowed(document)
    _check_standing(document)
    return document


def _check_dead(document: ClusterDocument) -> None:
    if strangers := [name for name in document.stand_ins if name not in document.votes]:
        raise BadCluster(f"given_up: {', '.join(strangers)} is no member")
    dead = document.declared_dead
    if not dead:
        return
    if document.former is None:
        raise BadCluster("dead: members are declared dead while the cluster changes, and never else")
    if unknown := [name for name in dead if name not in document.former.own_votes]:
        raise BadCluster(
            f"{', '.join(unknown)} cannot be declared dead: the members are {', '.join(document.former.own_votes)}"
        )
    if kept := [name for name in dead if name in document.own_votes]:
        raise BadCluster(
            f"{', '.join(kept)} is declared dead, and would still be a member: remove or replace it in the same change"
        )
    votes = document.former.own_votes
    left = sum(each for name, each in votes.items() if name not in dead)
    if 2 * left <= sum(votes.values()):
        raise BadCluster(
            f"without {', '.join(dead)}, {left} of {sum(votes.values())} votes are left, and a majority is needed: restore a backup, or use `quorate replace`"
        )


def _check_clock(clock: ClockSettings) -> None:
    for name, error_s in {
        "replica_error_s": clock.replica_error_s,
        "front_end_error_s": clock.front_end_error_s,
    }.items():
        if error_s is not None and not 0 <= error_s < math.inf:
            raise BadCluster(f"[clock]: {name} is {error_s}: use 0 or more seconds")
    if not 0 < clock.offset_max_s < math.inf:
        raise BadCluster(f"[clock]: offset_max_s is {clock.offset_max_s}: use more than 0 seconds")


def _check_types(types: Mapping[str, str], *, is_given: bool) -> None:
    if is_given and not 1 <= len(types) <= TYPES_MAX:
        raise BadCluster(f"[types]: give 1 to {TYPES_MAX} types, or leave the table out")
    for name, code in types.items():
        if name in known_types():
            raise BadCluster(f"[types]: {name} is a type of Quorate's own catalogue: use another name")
        if not _TYPE.fullmatch(name):
            raise BadCluster(
                f"[types]: the name {name!r} is not allowed: use 1 to 32 of a-z 0-9 _ -, a letter in front"
            )
        if not _CODE.fullmatch(code) or code.partition(":")[0].endswith(".py"):
            raise BadCluster(
                f"[types] {name}: {code!r} names no class: write MODULE:CLASS, as shop.types:Cart"
            )


def _check_shadowed(document: ClusterDocument) -> None:
    """The first rule that matches decides: one whose objects all match an earlier one would never be asked."""
    rules = document.choices
    for later, rule in enumerate(rules):
        for earlier, other in enumerate(rules[:later]):
            if covers(other.objects, rule.objects, document.specifications):
                raise BadCluster(
                    f"[[choices]] {later + 1} ({rule.objects}): rule {earlier + 1} ({other.objects}) matches all of its objects, "
                    f"and the first that matches decides: put rule {later + 1} before rule {earlier + 1}, or remove one"
                )


def is_replica_id(text: str) -> bool:
    """Whether a replica may have this id."""
    return text.isascii() and text.isalnum() and text.islower() and len(text) <= _ID_CHARS_MAX


def _check_replicas(document: ClusterDocument) -> None:
    if not 1 <= len(document.replicas) <= REPLICAS_MAX:
        raise BadCluster(f"[[replicas]]: give 1 to {REPLICAS_MAX} replicas, not {len(document.replicas)}")
    if len(document.own_votes) < len(document.replicas):
        raise BadCluster("[[replicas]]: two replicas have the same id")
    if len({replica.url for replica in document.replicas}) < len(document.replicas):
        raise BadCluster("[[replicas]]: two replicas have the same url")
    for replica in document.replicas:
        if not is_replica_id(replica.id):
            raise BadCluster(f"replica id {replica.id!r}: use 1 to 16 lower-case letters and digits")
        parts = urlsplit(replica.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadCluster(f"replica {replica.id}: url {replica.url!r} must look like http://host:port")
        if replica.moved is not UNSET and not 1 <= replica.moved <= EPOCH_MAX:
            raise BadCluster(
                f"replica {replica.id}: moved is {replica.moved}: the cluster writes this itself: leave it out"
            )
        if not 0 <= replica.votes <= VOTES_MAX:
            raise BadCluster(f"replica {replica.id}: votes must be 0 to {VOTES_MAX}, not {replica.votes}")


_OF_OUTBOXES: Final = ". With outbox = true, these are the quorums of the relay and of dequeues, as for any queue: a caller's enqueue needs one replica all the same"


def _check_rule(document: ClusterDocument, number: int, rule: ChoiceRule) -> None:
    adts = [name for name in document.specifications if rule.covers(name)]
    if not adts:
        known = ", ".join(document.specifications)
        raise BadCluster(
            f"[[choices]] {number}: {rule.objects!r} must start with one of {known}, as queue/jobs-*"
        )
    if not is_met(rule.objects, document.specifications):
        whole = "/".join(rule.objects.split("/")[:2])
        advice = (
            f"write {whole}, which holds for all its keys, or remove it"
            if whole != rule.objects
            else "remove it"
        )
        raise BadCluster(f"[[choices]] {number}: {rule.objects!r} matches no object: {advice}")
    for setting in ("outbox", "exact_empty"):
        if getattr(rule, setting) is False:
            raise BadCluster(f"[[choices]] {number} ({rule.objects}): {setting} = false: leave it out")
    if rule.has_outboxes and adts != ["queue"]:
        raise BadCluster(
            f"[[choices]] {number} ({rule.objects}): outbox = true is for queues: write it into a rule for queue/…"
        )
    if rule.has_exact_empty and not rule.has_outboxes:
        raise BadCluster(
            f"[[choices]] {number} ({rule.objects}): exact_empty = true is for queues with outbox = true; an empty answer of any other is exact: leave it out"
        )
    _check_fallback(document, f"[[choices]] {number} ({rule.objects})", rule)
    for name in adts:
        for state in (False, True) if rule.standing is not None else (False,):
            try:
                document.choice_by(rule.in_state(state), name)
            except BadChoice as error:
                words = f"[[choices]] {number} ({rule.objects}): {'fallback: ' if state else ''}{error}"
                raise BadCluster(f"{words}{_OF_OUTBOXES if rule.has_outboxes else ''}") from None


def _check_fallback(document: ClusterDocument, place: str, rule: ChoiceRule) -> None:
    if rule.fallen_back is False or (rule.has_fallen_back and rule.standing is None):
        raise BadCluster(
            f"{place}: fallen_back is true for a rule with a fallback in force: else leave it out"
        )
    if rule.standing is not None and (problem := rule.standing.problem(document.own_votes)) is not None:
        raise BadCluster(f"{place}: fallback: {problem}")


def _check_standing(document: ClusterDocument) -> None:
    """Each fallback can be put in force while its condition holds."""
    standing = document.standing_rules
    if not standing:
        return
    if len(standing) > STANDING_MAX:
        raise BadCluster(f"[[choices]]: at most {STANDING_MAX} of them with a fallback")
    if document.has_outboxes:
        raise BadCluster(
            "[[choices]]: a fallback is put in force by a change of the configuration, and a cluster whose queues have outboxes cannot change: remove one of both"
        )
    fallbacks = {rule.objects: rule.standing for rule in standing if rule.standing is not None}
    for condition in dict.fromkeys(each.condition for each in fallbacks.values()):
        same = {objects: each for objects, each in fallbacks.items() if each.condition == condition}
        if problem := _never(document, fallbacks, next(iter(same.values()))):
            raise BadCluster(
                f"[[choices]] ({', '.join(same)}): while {condition} no fallback could be put in force: {problem}"
            )


def _never(document: ClusterDocument, fallbacks: Mapping[str, Fallback], fallback: Fallback) -> str:
    """Why it could not be put in force whoever is live; empty where it could, or where there are too many sets of members to try."""
    found, votes = "", document.own_votes
    first = with_states(document, dict.fromkeys(fallbacks, False))
    for live in _may_be_live(fallback, votes):
        states = {objects: each.holds(votes, live) for objects, each in fallbacks.items()}
        after = with_states(document, states)
        problem = switch_problem(first, after, live)
        if problem and fallback.live_below:
            # Members fail one after another: what falls back for fewer of them may be in force by then.
            before = {
                objects: is_on and fallbacks[objects].condition != fallback.condition
                for objects, is_on in states.items()
            }
            problem = switch_problem(with_states(document, before), after, live)
        if not problem:
            return ""
        found = found or problem
    return found


def _may_be_live(fallback: Fallback, votes: Mapping[str, int]) -> Sequence[Sequence[str]]:
    """The largest sets of members that are live while the condition holds."""
    if fallback.down:
        return [[name for name in votes if name not in fallback.down]]
    number = fallback.live_below - 1
    return [] if math.comb(len(votes), number) > LIVE_SETS_MAX else list(combinations(votes, number))
