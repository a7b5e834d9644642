"""Which choice was in force when, in a running cluster: by its rules now, and by the configurations that replicas noted beside their probes.

Pure but for what it is given. A configuration is in force from the first moment at which any replica noted it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, from_json
from ...api_specs.messages import ConfigurationNote

if TYPE_CHECKING:
    from ...spark_reports.figures.derive_regimes import Since

Sizes = Mapping[str, tuple[int, int]]
"""Initial and final quorums in votes, by event class."""


class Told(NamedTuple):
    """The choice in force at first, when it changed, and sentences of what cannot be told."""

    present: Sizes | None
    changes: "Sequence[Since]" = ()
    sentences: Sequence[str] = ()


class Noted(NamedTuple):
    """A configuration, and the first moment at which a replica noted it."""

    from_us: int
    document: ClusterDocument


def told(
    document: ClusterDocument,
    notes: Iterable[ConfigurationNote],
    adt: Any,
    from_us: int,
    votes: Mapping[str, int],
) -> Told:
    """What was in force from a moment on; as the cluster has it now, where it did not change. `votes`, where they are given, count at all times."""
    now, unsure = choice_of(document, adt)
    plain = Told(now, (), [unsure] if unsure else [])
    own = _since(_noted(notes), from_us)
    name = _name(adt)
    if any(name not in each.document.specifications for each in own):
        return plain
    sizes = [_sizes(each.document, name) for each in own]
    known = [each for each in sizes if each is not None]
    changes = _changes(own, known, votes) if len(known) == len(own) else []
    if len(own) > 1 and len(known) < len(own):
        return _without(plain, f"in some of it no one choice of the {name}, in votes, was in force")
    if len(changes) < 2:
        return plain
    voters = votes or _voters(document)
    if gone := sorted({id for each in changes for id in each.votes or ()} - voters.keys()):
        return _without(plain, f"{', '.join(gone)} had votes in some of it, and {_verb(gone)} none now")
    return Told(known[0], changes, _unknown_before(own[0], from_us))


def choice_of(document: ClusterDocument, adt: Any) -> tuple[Sizes | None, str]:
    """The quorums that the cluster's rule gives objects of the type, in votes; else a sentence, where its rules do not say it so."""
    name = _name(adt)
    rules = [each for each in document.choices if name in document.specifications and each.covers(name)]
    if len(rules) == 1 and rules[0].classes and rules[0].ordering == "clock" and rules[0].standing is None:
        return _classes(document, rules[0], name), ""
    if not rules:
        return None, ""
    named = ", ".join(rule.objects for rule in rules)
    return (
        None,
        f"Majorities are taken to be in force; the cluster has rules for {named}: name another choice with --present.",
    )


def _name(adt: Any) -> str:
    return adt if isinstance(adt, str) else getattr(adt, "name", "")


def _sizes(document: ClusterDocument, name: str) -> Sizes | None:
    """As `choice_of`, with what is in force of a standing rule, and majorities where no rule is for the type; None where rules do not say it so."""
    rules = [each for each in document.choices if each.covers(name)]
    if not rules:
        return _classes(document, ChoiceRule("*"), name)
    rule = rules[0]
    given = rule.standing if rule.has_fallen_back else rule
    if len(rules) > 1 or rule.ordering != "clock" or given is None or not given.classes:
        return None
    return _classes(document, rule, name)


def _classes(document: ClusterDocument, rule: ChoiceRule, name: str) -> Sizes:
    sizes = document.choice_by(rule, name).classes
    return {event: (each.initial, each.final) for event, each in sizes.items()}


def _voters(document: ClusterDocument) -> dict[str, int]:
    return {id: votes for id, votes in document.votes.items() if votes}


def _noted(notes: Iterable[ConfigurationNote]) -> list[Noted]:
    """Each configuration once, from the first moment at which it was noted, in their order."""
    first: dict[int, Noted] = {}
    for each in notes:
        try:
            document = from_json(each.document)
        except BadCluster:
            continue  # of a later release
        from_us = round(each.time_s * 1e6)
        before = first.get(document.number)
        if before is None or from_us < before.from_us:
            first[document.number] = Noted(from_us, document)
    ordered: list[Noted] = []
    for _, found in sorted(first.items()):
        while ordered and ordered[-1].from_us >= found.from_us:
            ordered.pop()  # a replica had not heard of what others were in already
        ordered.append(found)
    return ordered


def _since(noted: Sequence[Noted], from_us: int) -> list[Noted]:
    """Those that were in force from a moment on."""
    before = [each for each in noted if each.from_us <= from_us]
    return [*before[-1:], *noted[len(before) :]]


def _changes(own: Sequence[Noted], sizes: Sequence[Sizes], votes: Mapping[str, int]) -> "list[Since]":
    """Each other choice or other votes, the first of them from the beginning of time on."""
    from ...spark_reports.figures.derive_regimes import Since  # noqa: PLC0415 - an extra

    found: list[Since] = []
    for each, classes in zip(own, sizes, strict=True):
        change = Since(each.from_us if found else 0, classes, None if votes else _voters(each.document))
        if not found or found[-1][1:] != change[1:]:
            found.append(change)
    return found


def _without(plain: Told, why: str) -> Told:
    """As it is now, and why nothing is told of before."""
    sentence = (
        f"The configuration changed within this time, and each by itself is not told: {why}. Ask for a part of the time with --from and --to, or say "
        "what was in force with --present and --since."
    )
    return plain._replace(sentences=[*plain.sentences, sentence])


def _verb(names: Sequence[str]) -> str:
    return "have" if len(names) > 1 else "has"


def _unknown_before(first: Noted, from_us: int) -> list[str]:
    """Say so where the first note is later than the time that is asked for."""
    from ...spark_reports.model.phrases import moment  # noqa: PLC0415 - an extra

    if first.from_us <= from_us:
        return []
    return [
        f"What was in force before {moment(first.from_us)} no replica has noted: it is taken to be what was in force then."
    ]
