"""Quorum choices as rules of a cluster file, in TOML: those of a document, and those that a plan offers to paste."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Final

import typer
from msgspec import UNSET
from msgspec.structs import replace

from ...adts.types.catalogue import SPECIFICATIONS, TYPE_PATTERN, adt_of, kept_type
from ...adts.types.eventual_queue import EventualQueue
from ...adts.types.semiqueue import Semiqueue
from ...api_specs.cluster import ChoiceRule
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
_ONE_TYPE: Final = re.compile(TYPE_PATTERN)


def filled_in(rule: ChoiceRule, votes: Mapping[str, int]) -> ChoiceRule:
    """The rule with numbers of votes for every class; systems, and rules for several types, stay as they were given."""
    adt = adt_of(rule.objects)
    if rule.reads or rule.initials or rule.finals or not _ONE_TYPE.fullmatch(adt):
        return rule
    choice = QuorumChoice(
        kept_type(adt), votes, rule.classes, ordering=rule.ordering, consistency=rule.promises
    )
    return replace(rule, classes=dict(choice.classes))


def rule_text(rule: ChoiceRule) -> str:
    """The rule in TOML, as it was given."""
    lines = ["[[choices]]\n", f"objects = {quoted(rule.objects)}\n"]
    lines += [] if rule.collect else [_OPTIONS]
    lines += [] if rule.ordering == "clock" else [f"ordering = {quoted(rule.ordering)}\n"]
    lines += ["outbox = true\n"] if rule.has_outboxes else []
    lines += ["exact_empty = true\n"] if rule.has_exact_empty else []
    lines += [] if rule.consistency is UNSET else [f"consistency = {quoted(rule.consistency)}\n"]
    lines += [f"reads = {quoted(rule.reads)}\n"] if rule.reads else []
    lines += [f"writes = {quoted(rule.writes)}\n"] if rule.writes else []
    for title, systems in (("initials", rule.initials), ("finals", rule.finals)):
        lines += [f"[choices.{title}]\n"] if systems else []
        lines += [f"{quoted(name)} = {quoted(system)}\n" for name, system in systems.items()]
    lines += ["\n[choices.classes]\n"] if rule.classes else []
    lines += [f"{quoted(name)} = [{initial}, {final}]\n" for name, (initial, final) in rule.classes.items()]
    return "".join(lines)


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
