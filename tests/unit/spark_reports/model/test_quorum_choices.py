"""Every valid choice of a type: what was run stands in its place, and what is not valid is never recommended."""

from quorate.adts.types.catalogue import known_types
from quorate.quorums.systems.expressions import parse_system
from quorate.quorums.systems.systems import is_quorum
from quorate.spark_reports.model.questions import ask, deciding
from quorate.spark_reports.model.quorum_choices import (
    READ_WRITE,
    RUN,
    TYPED,
    Choice,
    ClassQuorum,
    all_choices,
    is_valid,
    of_votes,
)

KNOWN = known_types()
VOTES = {f"r{i}": 1 for i in range(1, 6)}


def choice(name: str, ordering: str = "clock", adt: str = "queue", **classes: tuple[int, int]) -> Choice:
    made = tuple(of_votes(key.replace("_", "/"), sizes, VOTES) for key, sizes in classes.items())
    return Choice(name, adt, ordering, RUN, name, made)


def test_the_lectures_queue_of_five() -> None:
    found = all_choices([], {"queue": ["Enq", "Deq"]}, VOTES, KNOWN)
    assert [each.name for each in found] == [
        "Enq (0, 1), Deq (5, 1)",
        "Enq (0, 2), Deq (4, 2)",
        "Enq (0, 3), Deq (3, 3)",
        "Enq (0, 4), Deq (2, 4)",
        "Enq (0, 5), Deq (1, 5)",
        "read/write Enq (3, 3), Deq (3, 3)",
    ]
    assert [each.kind for each in found] == [TYPED] * 5 + [READ_WRITE]
    assert not any(each.run_as for each in found)


def test_what_was_run_stands_in_the_place_of_its_twin() -> None:
    """The full choice of a run has classes of operations that were never tried; they do not make it another."""
    typed = choice("lazy", Enq_Ok=(0, 2), Deq_Ok=(4, 2), Deq_Empty=(4, 0), Peek_Ok=(4, 0))
    plain = choice("rw", "quorum", Enq_Ok=(3, 3), Deq_Ok=(3, 3), Deq_Empty=(3, 0))
    odd = choice("big", Enq_Ok=(0, 3), Deq_Ok=(4, 3), Deq_Empty=(4, 0))
    found = all_choices([typed, plain, odd], {"queue": ["Enq", "Deq"]}, VOTES, KNOWN)
    by_name = {each.name: (each.kind, each.run_as) for each in found}
    assert by_name["lazy"] == (TYPED, "lazy")
    assert by_name["rw"] == (READ_WRITE, "rw")
    assert by_name["big"] == (RUN, "big")
    assert len(found) == 7
    assert found[1].classes == typed.classes


def test_a_read_write_choice_is_no_twin_of_a_typed_one_with_the_same_numbers() -> None:
    plain = choice("rw", "quorum", Enq_Ok=(3, 3), Deq_Ok=(3, 3), Deq_Empty=(3, 0))
    found = all_choices([plain], {"queue": ["Deq"]}, VOTES, KNOWN)
    assert [(each.name, each.kind) for each in found if each.run_as] == [("rw", READ_WRITE)]
    assert "Deq (3, 3)" in {each.name for each in found}


def test_a_name_that_a_run_has_taken_is_told_apart() -> None:
    odd = choice("Enq (0, 1), Deq (5, 1)", Enq_Ok=(0, 3), Deq_Ok=(4, 3), Deq_Empty=(4, 0))
    names = [each.name for each in all_choices([odd], {"queue": ["Enq", "Deq"]}, VOTES, KNOWN)]
    assert names[0] == "Enq (0, 1), Deq (5, 1) (not run)"
    assert len(set(names)) == len(names)


def test_quorums_that_can_miss_each_other_are_not_valid() -> None:
    assert is_valid(choice("good", Enq_Ok=(0, 2), Deq_Ok=(4, 2), Deq_Empty=(4, 0)), ["Enq", "Deq"], KNOWN)
    assert not is_valid(choice("bad", Enq_Ok=(0, 1), Deq_Ok=(4, 2), Deq_Empty=(4, 0)), ["Enq", "Deq"], KNOWN)
    assert not is_valid(choice("late", "quorum", Enq_Ok=(0, 3), Deq_Ok=(3, 3)), ["Enq", "Deq"], KNOWN)
    assert is_valid(choice("unknown", adt="heap", Push_Ok=(0, 1), Pop_Ok=(1, 1)), ["Push", "Pop"], KNOWN)
    systems = Choice(
        "grid",
        "queue",
        "clock",
        RUN,
        "grid",
        tuple(
            ClassQuorum(name, parse_system(initial), parse_system(final))
            for name, initial, final in (
                ("Enq/Ok", "choose(0; r1)", "r1*r2 + r3*r4"),
                ("Deq/Ok", "(r1+r2)*(r3+r4)", "r1*r2 + r3*r4"),
                ("Deq/Empty", "(r1+r2)*(r3+r4)", "choose(0; r1)"),
            )
        ),
    )
    assert is_valid(systems, ["Enq", "Deq"], KNOWN)


def test_a_type_that_is_not_known_is_answered_for_as_it_was_run() -> None:
    own = choice("x", adt="heap", Push_Ok=(0, 1), Pop_Ok=(5, 1))
    assert all_choices([own], {"heap": ["Push", "Pop"]}, VOTES, KNOWN) == (own,)


def test_the_questions_name_each_system_once_and_decide_by_up_set() -> None:
    typed = choice("lazy", Enq_Ok=(0, 2), Deq_Ok=(4, 2), Deq_Empty=(4, 0))
    asked = ask([typed], {}, VOTES, {("lazy", "Deq")}, {}, KNOWN)
    assert asked.used == {"queue": ("Deq",)}
    assert len(set(asked.systems)) == len(asked.systems)
    system = asked.systems[asked.run_systems["lazy", "Deq"]]
    assert is_quorum(system, {"r1", "r2", "r3", "r4"})
    held = deciding([system], [0b01111, 0b00111], list(VOTES))
    assert held == {(0, 0b01111): True, (0, 0b00111): False}
