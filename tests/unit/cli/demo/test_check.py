"""The verdict of a run: what is allowed, and what is found out."""

from collections import Counter

from quorate.cli.demo.check import QueueRun, Written, cell_problems, claim_problems, counter_problems


def test_every_item_delivered_once_is_sound() -> None:
    assert QueueRun({"a", "b"}, set(), Counter(["a", "b"])).problems() == []


def test_item_delivered_twice_is_found() -> None:
    assert "more than once" in QueueRun({"a"}, set(), Counter(["a", "a"])).problems()[0]


def test_item_that_nobody_added_is_found() -> None:
    assert "nobody added" in QueueRun({"a"}, set(), Counter(["a", "x"])).problems()[0]


def test_item_of_unknown_outcome_may_come_out_once_or_never() -> None:
    assert QueueRun({"a"}, {"u"}, Counter(["a", "u"])).problems() == []
    assert QueueRun({"a"}, {"u"}, Counter(["a"])).problems() == []
    assert QueueRun({"a"}, {"u"}, Counter(["a", "u", "u"])).problems()


def test_lost_item_is_found_unless_an_unknown_dequeue_explains_it() -> None:
    assert "never came out" in QueueRun({"a", "b"}, set(), Counter(["a"])).problems()[0]
    assert QueueRun({"a", "b"}, set(), Counter(["a"]), maybe_taken=1).problems() == []
    assert QueueRun({"a", "b", "c"}, set(), Counter(["a"]), maybe_taken=1).problems()


def test_cell_holds_the_last_of_writes_in_turn() -> None:
    writes = [Written(1, 0, 1), Written(2, 2, 3)]
    assert cell_problems("r", writes, 2) == []
    assert "later write" in cell_problems("r", writes, 1)[0]
    assert "nobody wrote" in cell_problems("r", writes, 9)[0]


def test_cell_may_hold_any_of_writes_at_the_same_time() -> None:
    writes = [Written(1, 0, 3), Written(2, 2, 4)]
    assert cell_problems("r", writes, 1) == []
    assert cell_problems("r", writes, 2) == []


def test_write_of_unknown_outcome_may_show_at_any_later_time() -> None:
    writes = [Written(1, 0), Written(2, 5, 6)]
    assert cell_problems("r", writes, 1) == []


def test_cell_is_absent_only_before_a_write_or_after_a_deletion() -> None:
    assert cell_problems("k", [], None) == []
    assert cell_problems("k", [Written(1, 0, 1)], None)
    assert cell_problems("k", [Written(1, 0, 1), Written(None, 2, 3)], None) == []


def test_counter_counts_each_success_once() -> None:
    assert counter_problems("c", 10, 2, 11) == []
    assert counter_problems("c", 10, 2, 9)
    assert counter_problems("c", 10, 2, 13)


def test_key_is_claimed_by_one() -> None:
    assert claim_problems({"k": ["a"]}, {}, {"k": "a"}) == []
    assert claim_problems({"k": ["a", "b"]}, {}, {"k": "a"})
    assert claim_problems({"k": ["a"]}, {"k": ["b"]}, {"k": "b"})
    assert claim_problems({}, {"k": ["b"]}, {"k": "b"}) == []
    assert claim_problems({}, {}, {"k": "b"})
