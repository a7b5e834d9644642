"""`quorate choice set OBJECTS`: another quorum choice for some objects of a running cluster.

Owns the words of one rule, and its place among the others. How it is carried out, `change_command` says.
"""

from typing import Annotated

import typer
from msgspec import UNSET
from msgspec.structs import replace

from ...adts.specification import operation_of
from ...adts.types.catalogue import adt_of
from ...api_specs.cluster import ChoiceRule, ClusterDocument, checked
from ...api_specs.patterns import covers
from ..failure import Usage
from ..groups import Group
from ..options import ClusterOption
from ..output import AsJson, reported, say
from ..quorums.choice_rule import filled_in, rule_text
from .change_command import DEADLINE_S, ChangeDeadlineOption, DryRunOption, carry_out
from .document import DEFAULT_NAME
from .status import cluster_document

choice_app = typer.Typer(cls=Group, help="The quorum choices of a running cluster.", no_args_is_help=True)


@choice_app.command("set")
@reported
def set_choice(
    objects: Annotated[
        str, typer.Argument(metavar="OBJECTS", help="Which objects, as queue/jobs or queue/fast-*.")
    ],
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
    cluster: ClusterOption = DEFAULT_NAME,
    dry_run: DryRunOption = False,
    deadline_s: ChangeDeadlineOption = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Give objects of a running cluster another quorum choice; callers go on.

    Without quorums: majorities. It prints the rule, to be put into the
    cluster file. For the rest see `quorate change`.
    """
    now = cluster_document(cluster)
    classes = [_class(now, objects, each) for each in quorums or []]
    if len(dict(classes)) < len(classes):
        raise Usage(f"{' '.join(quorums or [])}: give each class once.")
    rule = ChoiceRule(objects, dict(classes), reads=reads, writes=writes)
    wanted = with_rule(now, rule)
    say(rule_text(filled_in(rule, wanted.own_votes)))
    carry_out(
        cluster, now, lambda at: with_rule(at, rule), dry_run=dry_run, deadline_s=deadline_s, as_json=as_json
    )


def with_rule(document: ClusterDocument, rule: ChoiceRule) -> ClusterDocument:
    """The document with this rule in the place of the one for the same objects, or before the first that would leave it none; of one that changes, what it
    changes to. Raises BadCluster."""
    document = replace(document, old=UNSET)
    rules = list(document.choices)
    same = next((place for place, each in enumerate(rules) if each.objects == rule.objects), None)
    if same is not None:
        before = rules[same]
        rules[same] = replace(
            rule, ordering=before.ordering, collect=before.collect, consistency=before.consistency
        )
    else:
        wider = (
            place
            for place, each in enumerate(rules)
            if covers(each.objects, rule.objects, document.specifications)
        )
        rules.insert(next(wider, len(rules)), rule)
    return checked(replace(document, choices=tuple(rules)))


def _class(document: ClusterDocument, objects: str, text: str) -> tuple[str, tuple[int, int]]:
    """`Enq=0,1`: an event class, or an operation for its normal outcome, and its quorums."""
    word, _, numbers = text.partition("=")
    initial, _, final = numbers.partition(",")
    if not (initial.strip().isdigit() and final.strip().isdigit()):
        raise Usage(f"{text!r}: write CLASS=INITIAL,FINAL with two whole numbers of votes, as Deq=2,2.")
    adt = adt_of(objects)
    if (specification := document.specifications.get(adt)) is None:
        raise Usage(
            f"{objects!r} must start with one of {', '.join(document.specifications)}, as queue/jobs."
        )
    classes = list(specification.depends)
    found = word if word in classes else next((each for each in classes if operation_of(each) == word), None)
    if found is None:
        raise Usage(f"{text!r}: a {adt} has no {word!r}: use {', '.join(classes)}.")
    return found, (int(initial), int(final))
