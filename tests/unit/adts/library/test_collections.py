"""Collections: what each operation does, and that they are those of the catalogue under other names."""

import pytest

from quorate.adts.library import Directory, Empty, Journal, Missing, Present, PriorityQueue, Set, Stack
from quorate.adts.plain_class import PlainClass
from quorate.adts.specification import Invocation
from quorate.adts.types.directory import Directory as DirectorySpecified
from quorate.adts.types.priority_queue import PriorityQueue as PriorityQueueSpecified
from quorate.adts.types.set import Set as SetSpecified
from quorate.adts.types.stack import Stack as StackSpecified
from tests.unit.adts.library.alike import assert_alike


def test_a_set_is_that_of_the_catalogue() -> None:
    assert_alike(Set, SetSpecified(), {"add": "Insert", "remove": "Remove", "size": "Size"})


def test_a_set_has_each_element_once_in_order() -> None:
    members = Set()
    for element in ("b", "a", "b"):
        members.add(element)
    members.remove("c")
    assert (members.elements(), members.size()) == (["a", "b"], 2)
    assert [members.contains(each) for each in "abc"] == [True, True, False]
    members.remove("a")
    assert members.elements() == ["b"]


def test_a_stack_is_that_of_the_catalogue() -> None:
    assert_alike(Stack, StackSpecified(), {"push": "Push", "pop": "Pop", "top": "Top"})


def test_a_directory_is_that_of_the_catalogue() -> None:
    names = {each: each.capitalize() for each in ("put", "insert", "update", "delete", "lookup")}
    assert_alike(
        Directory, DirectorySpecified(), names, outcomes={"Missing": "Absent"}, results_of=("lookup",)
    )


def test_a_directory_knows_whether_a_key_is_there() -> None:
    directory = Directory()
    directory.insert("b", 1)
    directory.put("a", 2)
    assert (directory.keys(), directory.lookup("a")) == (["a", "b"], 2)
    with pytest.raises(Present):
        directory.insert("a", 3)
    assert directory.delete("a") == 2
    with pytest.raises(Missing):
        directory.update("a", 3)


def test_a_priority_queue_is_that_of_the_catalogue() -> None:
    """Where an item is its own priority."""

    class Sorted(PriorityQueue):
        def enq(self, item: int) -> None:
            self.put(item, item)

    assert_alike(Sorted, PriorityQueueSpecified(), {"enq": "Enq", "take": "Deq", "first": "Peek"})


def test_of_equal_priority_the_first_to_come_goes_first() -> None:
    queue = PriorityQueue()
    for item, priority in (("late", 2), ("one", 1), ({"two": 2}, 1), ("soon", 0)):
        queue.put(item, priority)
    assert (queue.size(), queue.first()) == (4, "soon")
    assert [queue.take() for _ in range(4)] == ["soon", "one", {"two": 2}, "late"]
    with pytest.raises(Empty):
        queue.take()
    with pytest.raises(Empty):
        queue.first()


def test_a_journal_numbers_what_is_appended() -> None:
    plain = PlainClass(Journal)
    state = plain.initial()
    for number, entry in enumerate("abc"):
        state, response = plain.step(state, Invocation("append", (entry,)))
        assert response.results == (number,)
    for args, told in {
        (0, 100): "abc",
        (1, 1): "b",
        (2, 5): "c",
        (3, 1): "",
        (-2, 1): "a",
        (1, -1): "",
    }.items():
        _, response = plain.step(state, Invocation("read", args))
        assert response.results[0].text == str(list(told)).replace("'", '"').replace(" ", "")
    assert plain.step(state, Invocation("length"))[1].results == (3,)
