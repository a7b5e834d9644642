"""Which operations can be served at this moment, by rule and data type: what `quorate status` and `quorate doctor` say of quorums.

Owns the words. A client finds its quorums among the replicas that answer it, so these are counted; what each of these replicas
says of itself (`/v1/health/quorums`) is told where it finds fewer, as behind a cut between replicas.
"""

from collections.abc import Collection, Iterable

from msgspec import Struct

from ...adts.specification import operation_of
from ...api_specs.classes_held import ClassHeld, classes_held
from ...api_specs.cluster import ClusterDocument

HEALTH_PATH = "/v1/health/quorums"


class RuleServed(Struct, frozen=True):
    """The operations on the objects of one type that a rule is in force for. `lacking` has those that find no quorum, or single outcomes of
    others that do not, and says of each what is missing."""

    rule: int
    objects: str
    served: tuple[str, ...]
    lacking: dict[str, str]

    @property
    def told(self) -> str:
        """In words."""
        by_lack: dict[str, list[str]] = {}
        for name, lack in self.lacking.items():
            by_lack.setdefault(lack, []).append(name)
        lacks = [f"{', '.join(names)} no: {lack}" for lack, names in by_lack.items()]
        return f"{self.objects}: " + "; ".join(
            [*([f"{', '.join(self.served)} yes"] if self.served else []), *lacks]
        )


def served_by(document: ClusterDocument, ready: Collection[str]) -> list[RuleServed]:
    """By rule and type, what these replicas can serve together."""
    by_rule: dict[tuple[int, str], list[ClassHeld]] = {}
    for each in classes_held(document, ready):
        objects = f"{each.type}/*" if each.objects == "*" else each.objects
        by_rule.setdefault((each.rule, objects), []).append(each)
    return [_rule_served(rule, objects, classes) for (rule, objects), classes in by_rule.items()]


def _rule_served(rule: int, objects: str, classes: Iterable[ClassHeld]) -> RuleServed:
    lacks: dict[str, dict[str, str]] = {}
    for each in classes:
        lacks.setdefault(operation_of(each.event_class), {})[each.event_class] = each.lacks
    served = tuple(name for name, by_class in lacks.items() if not all(by_class.values()))
    lacking: dict[str, str] = {}
    for name, by_class in lacks.items():
        for event_class, lack in by_class.items():
            if lack:
                lacking.setdefault(event_class if name in served else name, lack)
    return RuleServed(rule, objects, served, lacking)
