"""All minimal choices: the lecture's tables exactly, and a brute force over all sizes and sets for every N up to 6."""

from collections.abc import Collection, Mapping

import pytest

from quorate.adts.types.catalogue import known_types
from quorate.quorums.choices.choice import Ordering, QuorumChoice
from quorate.quorums.choices.choices import Choice, Replication, Rule, constraints_of, minimal_choices
from quorate.quorums.systems.systems import BadQuorums
from tests.unit.quorums import listing

Rows = list[dict[str, tuple[int, int]]]
TYPES = known_types()


def equal(number: int) -> dict[str, int]:
    return {f"r{each}": 1 for each in range(1, number + 1)}


def table(
    adt: str,
    votes: Mapping[str, int],
    operations: Collection[str] | None = None,
    *,
    rule: Rule = "inclusion",
    ordering: Ordering = "clock",
    replication: Replication = "typed",
) -> Rows:
    constraints = constraints_of(TYPES[adt], operations, ordering=ordering, replication=replication)
    return [
        {name: (sizes.initial, sizes.final) for name, sizes in choice.classes.items()}
        for choice in minimal_choices(constraints, votes, rule)
    ]


def queue_rows(enqs: list[int], total: int) -> Rows:
    return [{"Enq/Ok": (0, n), "Deq/Ok": (total + 1 - n, n), "Deq/Empty": (total + 1 - n, 0)} for n in enqs]


def write_rows(*rows: tuple[int, tuple[int, int]]) -> Rows:
    return [{"Write/Ok": write, "Read/Ok": (read, 0)} for read, write in rows]


VERSIONS = write_rows((1, (1, 5)), (2, (2, 4)), (3, (3, 3)))
TIMESTAMPS = write_rows(*((6 - n, (0, n)) for n in range(1, 6)))
FILE = ["Read", "Write"]
QUEUE = ["Enq", "Deq"]


def sorted_rows(rows: Rows) -> list[list[tuple[str, tuple[int, int]]]]:
    return sorted(sorted(row.items()) for row in rows)


@pytest.mark.parametrize("adt", ["file", "register"])
def test_the_lecture_version_numbered_file(adt: str) -> None:
    """N = 5: read (1, 0) (2, 0) (3, 0); write (1, 5) (2, 4) (3, 3). With clocks that nobody trusts it is the same."""
    for options in ({"replication": "versions"}, {"ordering": "quorum"}):
        rows = table(adt, equal(5), FILE, rule="by-operation", **options)  # type: ignore[arg-type]
        assert sorted_rows(rows) == sorted_rows(VERSIONS)


@pytest.mark.parametrize("rule", ["inclusion", "by-operation"])
def test_the_lecture_timestamped_file(rule: Rule) -> None:
    """N = 5: read (1, 0) … (5, 0); write (0, 5) … (0, 1); both by the type's own relation and on read/write quorums."""
    for replication in ("typed", "timestamps"):
        rows = table("file", equal(5), FILE, rule=rule, replication=replication)
        assert sorted_rows(rows) == sorted_rows(TIMESTAMPS)


def test_the_lecture_queue_of_three() -> None:
    assert table("queue", equal(3), QUEUE) == queue_rows([1, 2, 3], 3)


def test_the_lecture_queue_of_five_follows_the_other_rule() -> None:
    assert table("queue", equal(5), QUEUE, rule="by-operation") == queue_rows([1, 2, 3], 5)
    assert table("queue", equal(5), QUEUE) == queue_rows([1, 2, 3, 4, 5], 5)
    assert table("queue", equal(3), QUEUE, rule="by-operation") == queue_rows([1, 2], 3)


def test_the_lecture_queue_on_read_write_quorums() -> None:
    """N = 5: Enq and Deq/Ok (3, 3), Deq/Empty (3, 0). With timestamps, too: an Enq does not replace the whole state."""
    expected = [{"Enq/Ok": (3, 3), "Deq/Ok": (3, 3), "Deq/Empty": (3, 0)}]
    for replication in ("versions", "timestamps"):
        rows = table("queue", equal(5), QUEUE, rule="by-operation", replication=replication)
        assert rows == expected


def test_order_by_quorum_makes_an_enqueue_read() -> None:
    assert table("queue", equal(3), QUEUE, rule="by-operation", ordering="quorum") == [
        {"Enq/Ok": (2, 2), "Deq/Ok": (2, 2), "Deq/Empty": (2, 0)}
    ]


def as_set(choices: list[Choice]) -> set[tuple[tuple[str, int, int], ...]]:
    return {tuple((name, *sizes) for name, sizes in choice.classes.items()) for choice in choices}


SMALL = [
    ("queue", QUEUE),
    ("file", None),
    ("register", None),
    ("account", None),
    ("bounded-counter", None),
    ("semiqueue", None),
    ("counter", None),
    ("stack", None),
    ("priority-queue", None),
    ("set", ["Insert", "Remove", "Member"]),
    ("dictionary", ["Put", "Get", "Cas"]),
    ("directory", ["Insert", "Delete", "Lookup"]),
]
"""Every type, with as many operations as a dumb search over all sizes can bear."""


@pytest.mark.parametrize("ordering", ["clock", "quorum"])
@pytest.mark.parametrize(("adt", "operations"), SMALL)
@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5, 6])
def test_brute_force_finds_the_same_choices(
    adt: str, operations: list[str] | None, replicas: int, ordering: Ordering
) -> None:
    constraints = constraints_of(TYPES[adt], operations, ordering=ordering)
    choices = minimal_choices(constraints, equal(replicas))
    assert choices
    assert as_set(choices) == listing.minimal_choices(constraints, equal(replicas))


@pytest.mark.parametrize("weights", [(2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 1, 0), (5, 2, 2, 1), (1, 0, 0)])
def test_brute_force_finds_the_same_choices_of_weighted_votes(weights: tuple[int, ...]) -> None:
    votes = dict(zip("abcd", weights, strict=False))
    for adt, operations in (("queue", QUEUE), ("file", None)):
        constraints = constraints_of(TYPES[adt], operations)
        assert as_set(minimal_choices(constraints, votes)) == listing.minimal_choices(constraints, votes)


@pytest.mark.parametrize("adt", TYPES)
@pytest.mark.parametrize("ordering", ["clock", "quorum"])
def test_every_minimal_choice_can_be_built(adt: str, ordering: Ordering) -> None:
    """What the calculus offers, a cluster file accepts; and no size of it can be lowered alone."""
    specification = TYPES[adt]
    constraints = constraints_of(specification, ordering=ordering)
    choices = minimal_choices(constraints, equal(4))
    assert choices
    for choice in choices:
        built = QuorumChoice(specification, equal(4), choice.classes, ordering=ordering)
        assert built.classes == choice.classes
        assert all(choice.classes[name].final >= 1 for name in specification.changes)


def test_pruning_by_operation_keeps_what_no_other_beats() -> None:
    for adt, specification in TYPES.items():
        constraints = constraints_of(specification)
        every = minimal_choices(constraints, equal(5))
        kept = minimal_choices(constraints, equal(5), "by-operation")
        needs = {id(choice): [choice.needed_of(op) for op in constraints.outcomes] for choice in every}
        expected = [
            choice
            for choice in every
            if not any(
                needs[id(other)] != needs[id(choice)]
                and all(a <= b for a, b in zip(needs[id(other)], needs[id(choice)], strict=True))
                for other in every
            )
        ]
        assert kept == expected, adt


def test_an_operation_that_nobody_uses_constrains_nobody() -> None:
    assert table("queue", equal(3), ["Enq"]) == [{"Enq/Ok": (0, 1)}]


@pytest.mark.parametrize(
    ("operations", "votes", "sentence"),
    [
        (["Push"], equal(3), "a queue has no operation 'Push': use Enq, Deq, Peek, Size"),
        (None, {"a": 0}, "no votes at all"),
        (None, {}, "no votes at all"),
        (None, {"a": -1}, "'a' has -1 votes; give 0 or more"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(
    operations: list[str] | None, votes: dict[str, int], sentence: str
) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        table("queue", votes, operations)
