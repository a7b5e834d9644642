"""Quorum choices as rules of a cluster file, in TOML: those of a document, and those that a plan offers to paste."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, TypeVar

import typer
from msgspec import UNSET
from msgspec.structs import replace

from ...adts.types.catalogue import SPECIFICATIONS, TYPE_PATTERN, adt_of, kept_type
from ...adts.types.eventual_queue import EventualQueue
from ...adts.types.semiqueue import Semiqueue
from ...api_specs.cluster import ChoiceRule, Fallback
from ...quorums.choices.assignment import Assignment
from ...quorums.choices.choice import Ordering, QuorumChoice
from ...quorums.choices.choices import Replication
from ...quorums.systems.systems import is_quorum
from ..failure import Usage

TomlOption = Annotated[
    bool, typer.Option("--toml", help="Also print each as a rule to paste into the cluster file.")
]

_PLACE: Final = "# Above any other rule that matches the same objects: the first that matches applies.\n"
_OPTIONS: Final = "collect = false # keeps decided events in the logs, for teaching\n"
_Given = TypeVar("_Given", ChoiceRule, Fallback)
_ONE_TYPE: Final = re.compile(TYPE_PATTERN)


def filled_in(rule: ChoiceRule, votes: Mapping[str, int]) -> ChoiceRule:
    """The rule with numbers of votes for every class; systems, and rules for several types, stay as they were given."""
    if not _ONE_TYPE.fullmatch(adt_of(rule.objects)):
        return rule
    if rule.standing is not None:
        rule = replace(rule, fallback=_filled_in(rule, rule.standing, votes))
    return _filled_in(rule, rule, votes)


def _filled_in(rule: ChoiceRule, given: _Given, votes: Mapping[str, int]) -> _Given:
    if given.reads or given.initials or given.finals:
        return given
    choice = QuorumChoice(
        kept_type(adt_of(rule.objects)),
        votes,
        given.classes,
        ordering=rule.ordering,
        consistency=rule.promises,
    )
    return replace(given, classes=dict(choice.classes))


def rule_text(rule: ChoiceRule) -> str:
    """The rule in TOML, as it was given."""
    lines = ["[[choices]]\n", f"objects = {quoted(rule.objects)}\n"]
    lines += [] if rule.collect else [_OPTIONS]
    lines += [] if rule.ordering == "clock" else [f"ordering = {quoted(rule.ordering)}\n"]
    lines += ["outbox = true\n"] if rule.has_outboxes else []
    lines += ["exact_empty = true\n"] if rule.has_exact_empty else []
    lines += [] if rule.consistency is UNSET else [f"consistency = {quoted(rule.consistency)}\n"]
    lines += _quorum_lines("choices", rule)
    if (fallback := rule.standing) is not None:
        lines += ["\n[choices.fallback]\n"]
        lines += [f"down = [{', '.join(map(quoted, fallback.down))}]\n"] if fallback.down else []
        lines += [f"live_below = {fallback.live_below}\n"] if fallback.live_below else []
        lines += [f"after_s = {repr(fallback.after_s).removesuffix('.0')}\n"]
        lines += _quorum_lines("choices.fallback", fallback)
    return "".join(lines)


def _quorum_lines(table: str, given: ChoiceRule | Fallback) -> Iterator[str]:
    """Those of one choice, which stands in this table."""
    if given.reads:
        yield f"reads = {quoted(given.reads)}\n"
    if given.writes:
        yield f"writes = {quoted(given.writes)}\n"
    for title, systems in (("initials", given.initials), ("finals", given.finals)):
        if systems:
            yield f"[{table}.{title}]\n"
        for name, system in systems.items():
            yield f"{quoted(name)} = {quoted(system)}\n"
    if given.classes:
        yield f"\n[{table}.classes]\n"
    for name, (initial, final) in given.classes.items():
        yield f"{quoted(name)} = [{initial}, {final}]\n"


def offered_text(assignment: Assignment, ordering: Ordering, replication: Replication) -> str | None:
    """The rule in TOML that keeps all objects of the type by the assignment, whatever votes the replicas have.

    None where the service keeps no objects in this way: types for planning, and replicas that hold the whole state.
    """
    adt = assignment.constraints.type_name
    if adt not in SPECIFICATIONS or replication != "typed":
        return None
    initials = {name: str(each) for name, each in assignment.initials.items() if not is_quorum(each, ())}
    finals = {name: str(each) for name, each in assignment.finals.items() if not is_quorum(each, ())}
    rule = ChoiceRule(f"{adt}/*", ordering=ordering, initials=initials, finals=finals)
    return _PLACE + rule_text(rule)


def check_offered(adt: str, replication: Replication) -> None:
    """Usage where there is no rule to print."""
    if adt not in SPECIFICATIONS or replication != "typed":
        kept = ", ".join(SPECIFICATIONS)
        if adt in (EventualQueue.name, Semiqueue.name):
            exact = " and exact_empty = true" if adt == Semiqueue.name else ""
            raise Usage(
                f"--toml: give a queue outbox = true{exact}, and quorums of a queue for its relay; leave --toml out"
            )
        raise Usage(f"--toml: the service keeps objects of the types {kept}, by typed logs; leave --toml out")


def quoted(text: str) -> str:
    """A TOML string: JSON's form of it, but TOML takes no DEL as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
