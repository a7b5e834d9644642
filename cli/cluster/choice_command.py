"""`quorate choice`: the quorum choices of a running cluster: shown, set and removed, each for some objects.

Owns the words of one rule, and its place among the others. How it is carried out, `change_command` says.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from ...adts.specification import operation_of
from ...adts.types.catalogue import adt_of
from ...api_specs.cluster import AFTER_S, ChoiceRule, ClusterDocument, Fallback, alone, checked
from ...api_specs.configuration import state_kept
from ...api_specs.patterns import covers, is_met
from ..failure import Usage
from ..groups import Group
from ..options import ClusterOption
from ..output import AsJson, answer, reported, say
from ..quorums.advice import Advice, AdviceOption, StandingOption
from ..quorums.choice_rule import filled_in, rule_text
from .change_command import (
    DEADLINE_S,
    RATE,
    ChangeDeadlineOption,
    DryRunOption,
    Manner,
    RateOption,
    carry_out,
)
from .configuration_command import CHANGING
from .document import DEFAULT_NAME
from .status import fallback_state, told_document

ObjectsArgument = Annotated[
    str, typer.Argument(metavar="OBJECTS", help="Which objects, as queue/jobs or queue/fast-*.")
]

FallbackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fallback",
        metavar="CLASS=INITIAL,FINAL",
        help="A second choice, once for each class; in force while --down or --live-below holds.",
    ),
]
AfterOption = Annotated[
    float | None,
    typer.Option(
        "--after",
        metavar="SECONDS",
        help=f"How long, before the cluster switches; {AFTER_S:g} if left out.",
    ),
]

choice_app = typer.Typer(cls=Group, help="The quorum choices of a running cluster.", no_args_is_help=True)


@choice_app.command("set")
@reported
def set_choice(
    objects: ObjectsArgument,
    quorums: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLASS=INITIAL,FINAL…",
            help="Votes that are read before and that store it after, as Enq=0,1 Deq=3,1 Deq/Empty=3,0; the rest is filled in.",
        ),
    ] = None,
    reads: Annotated[
        str, typer.Option("--reads", metavar="SYSTEM", help="A quorum system instead, as 'r1*r2 + r3*r4'.")
    ] = "",
    writes: Annotated[
        str, typer.Option("--writes", metavar="SYSTEM", help="Who stores changes; else what meets --reads.")
    ] = "",
    advice: AdviceOption = None,
    standing: StandingOption = False,
    fallback: FallbackOption = None,
    fallback_reads: Annotated[
        str, typer.Option("--fallback-reads", metavar="SYSTEM", help="A quorum system for it instead.")
    ] = "",
    fallback_writes: Annotated[
        str, typer.Option("--fallback-writes", metavar="SYSTEM", help="As --writes, for the second choice.")
    ] = "",
    down: Annotated[
        list[str] | None,
        typer.Option("--down", metavar="ID", help="While this member is down; with several, all of them."),
    ] = None,
    live_below: Annotated[
        int, typer.Option("--live-below", metavar="N", min=0, help="While fewer members than that are live.")
    ] = 0,
    after_s: AfterOption = None,
    cluster: ClusterOption = DEFAULT_NAME,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    rate: RateOption = RATE,
    as_json: AsJson = False,
) -> None:
    """Give objects of a running cluster another quorum choice; callers go on.

    Without quorums: those that a report recommends (--advice), or its rule
    of two choices (--standing), else majorities. Without a fallback, none is
    kept. It prints the rule, to be put into the cluster file. For the rest
    see `quorate change`.
    """
    now = told_document(cluster)
    _check_objects(now, objects)
    rule = ChoiceRule(objects, _classes(now, objects, quorums), reads=reads, writes=writes)
    is_first = bool(quorums or reads or writes)
    condition = _Condition(tuple(down or ()), live_below, after_s)
    second = _second(_classes(now, objects, fallback), fallback_reads, fallback_writes, condition)
    if standing:
        _check_standing(has_report=advice is not None, has_words=is_first or second is not None)
    report = None if advice is None else Advice(advice, now, objects, is_standing=standing)
    if report is not None and not is_first:
        rule = report.rule
    if second is not None:
        rule = replace(rule, fallback=second)
    wanted = with_rule(now, rule)
    say(rule_text(filled_in(rule, wanted.own_votes)))
    carry_out(
        now,
        lambda at: with_rule(at, rule),
        Manner(dry_run, deadline_s, rate, as_json),
        shown={} if report is None else _measured(report, objects, now, wanted),
    )


class _Condition(NamedTuple):
    down: tuple[str, ...]
    live_below: int
    after_s: float | None


def _second(
    classes: dict[str, tuple[int, int]], reads: str, writes: str, condition: _Condition
) -> Fallback | None:
    """The second choice that the words of a command give; None where there are none."""
    down, live_below, after_s = condition
    if not (classes or reads or writes or down or live_below or after_s is not None):
        return None
    return Fallback(classes, down, live_below, AFTER_S if after_s is None else after_s, reads, writes)


def _measured(report: Advice, objects: str, now: ClusterDocument, wanted: ClusterDocument) -> dict[str, Any]:
    """Say what the report has of the choices before and after; the same for programs."""
    rows = report.compared(now if now.former is None else now.former, wanted)
    say(f"By the report {report.source}:")
    for sentence in report.sentences:
        say(sentence)
    for row in rows:
        say(f"{objects}: {row.told}.")
    if not rows:
        say("It lacks some of the sets of replicas that were up together, so it has no figures for a choice.")
    return {"advice": {"report": str(report.place), "available": to_builtins(rows), **report.shares}}


def _check_standing(*, has_report: bool, has_words: bool) -> None:
    if not has_report:
        raise Usage("--standing takes the rule of a report: add --advice OUT, the folder of the report.")
    if has_words:
        raise Usage(
            "--standing takes both choices and the condition from the report: leave out quorums, the fallback, --down, --live-below and --after; or "
            "leave out --standing, and write them as the report's rule has them."
        )


@choice_app.command("show")
@reported
def show_choice(
    objects: Annotated[
        str, typer.Argument(metavar="OBJECTS", help="Whose rule, as queue/jobs; else all.")
    ] = "",
    cluster: ClusterOption = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Print the rules in force, or the one that decides for an object."""
    document = told_document(cluster)
    rules, head = document.choices, "" if document.former is None else CHANGING
    if objects:
        rule = _deciding(document, objects)
        rules = (rule,) if rule in document.choices else ()
        if not rules:
            head += f"# No rule is for {objects}: majorities.\n"
            rule = ChoiceRule(objects)
        text = _shown(document, rule)
    else:
        text = "\n".join(_shown(document, each) for each in rules)
    told = {"epoch": document.number, "is_changing": document.former is not None}
    answer(as_json, told | {"rules": to_builtins(rules)}, (head + text).removesuffix("\n"))


def _shown(document: ClusterDocument, rule: ChoiceRule) -> str:
    """The rule, and which of two choices is in force."""
    text = rule_text(filled_in(rule, document.own_votes))
    if rule.standing is None:
        return text
    return f"# Its fallback is {fallback_state(document, rule)} while {rule.standing.condition}.\n{text}"


def _deciding(document: ClusterDocument, objects: str) -> ChoiceRule:
    """The rule for exactly these objects, or the first that matches an object; the default without one. Raises Usage."""
    _check_objects(document, objects)
    if (same := _rule_for(document, objects)) is not None:
        return same
    if any(mark in objects for mark in "*?["):
        raise Usage(f"{_no_rule(document, objects)} Or name one object, as queue/jobs.")
    return document.rule_of(objects)


@choice_app.command("remove")
@reported
def remove_choice(
    objects: ObjectsArgument,
    cluster: ClusterOption = DEFAULT_NAME,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    rate: RateOption = RATE,
    as_json: AsJson = False,
) -> None:
    """Remove the rule for exactly these objects; callers go on.

    Then the next rule that matches decides, and majorities without one. For
    the rest see `quorate change`.
    """
    now = told_document(cluster)
    _check_objects(now, objects)
    # While its removal is under way the rule is one of before alone: who repeats the command goes on with it.
    if all(_rule_for(each, objects) is None for each in (now, now.former or now)):
        raise Usage(_no_rule(now, objects))
    carry_out(now, lambda at: without_rule(at, objects), Manner(dry_run, deadline_s, rate, as_json))


def _rule_for(document: ClusterDocument, objects: str) -> ChoiceRule | None:
    return next((each for each in document.choices if each.objects == objects), None)


def _no_rule(document: ClusterDocument, objects: str) -> str:
    there = ", ".join(each.objects for each in document.choices) or "none at all"
    return f"No rule is for exactly {objects}: there are {there}."


def without_rule(document: ClusterDocument, objects: str) -> ClusterDocument:
    """The document without the rule for exactly these objects; of one that changes, what it changes to."""
    left = tuple(each for each in document.choices if each.objects != objects)
    return checked(replace(alone(document), choices=left))


def with_rule(document: ClusterDocument, rule: ChoiceRule) -> ClusterDocument:
    """The document with this rule in the place of the one for the same objects, or before the first that would leave it none; of one that changes, what it
    changes to. Raises BadCluster."""
    document = alone(document)
    rules = list(document.choices)
    if (before := _rule_for(document, rule.objects)) is not None:
        kept = replace(rule, ordering=before.ordering, collect=before.collect, consistency=before.consistency)
        rules[rules.index(before)] = state_kept(kept, before)
    else:
        wider = (
            place
            for place, each in enumerate(rules)
            if covers(each.objects, rule.objects, document.specifications)
        )
        rules.insert(next(wider, len(rules)), rule)
    return checked(replace(document, choices=tuple(rules)))


def _check_objects(document: ClusterDocument, objects: str) -> None:
    """Usage with what to write, where no object of the cluster can have such a name."""
    adt, _, name = objects.partition("/")
    known = document.specifications
    if is_met(objects, known) or (adt in known and name):
        return
    if adt in known:
        raise Usage(
            f"{objects!r} is a type alone: write {adt}/NAME for one object, or '{adt}/*' for all of them."
        )
    if adt == "dict":
        raise Usage(f"{objects!r}: rules call that type dictionary: write dictionary/{name or 'NAME'}.")
    raise _of_no_type(document, objects)


def _of_no_type(document: ClusterDocument, objects: str) -> Usage:
    return Usage(f"{objects!r} must start with one of {', '.join(document.specifications)}, as queue/jobs.")


def _classes(
    document: ClusterDocument, objects: str, words: Sequence[str] | None
) -> dict[str, tuple[int, int]]:
    classes = [_class(document, objects, each) for each in words or ()]
    if len(dict(classes)) < len(classes):
        raise Usage(f"{' '.join(words or ())}: give each class once.")
    return dict(classes)


def _class(document: ClusterDocument, objects: str, text: str) -> tuple[str, tuple[int, int]]:
    """`Enq=0,1`: an event class, or an operation for its normal outcome, and its quorums."""
    word, _, numbers = text.partition("=")
    initial, _, final = numbers.partition(",")
    if not (initial.strip().isdigit() and final.strip().isdigit()):
        raise Usage(f"{text!r}: write CLASS=INITIAL,FINAL with two whole numbers of votes, as Deq=2,2.")
    adt = adt_of(objects)
    if (specification := document.specifications.get(adt)) is None:
        raise _of_no_type(document, objects)
    classes = list(specification.depends)
    found = word if word in classes else next((each for each in classes if operation_of(each) == word), None)
    if found is None:
        raise Usage(f"{text!r}: a {adt} has no {word!r}: use {', '.join(classes)}.")
    return found, (int(initial), int(final))
