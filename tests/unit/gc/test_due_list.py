"""What waits until it is due: in order, once, and put off by whoever pushes it again."""

from quorate.gc.due_list import DueList


def popped(waiting: DueList, mono_s: float) -> list[str]:
    found = []
    while waiting.is_due(mono_s):
        if (name := waiting.pop(mono_s)) is not None:
            found.append(name)
    return found


def test_what_is_due_comes_in_order_and_once() -> None:
    waiting = DueList()
    for due_s, name in enumerate("cab"):
        waiting.push(name, due_s)
    assert popped(waiting, 1) == ["c", "a"]
    assert ("a" in waiting, "b" in waiting, len(waiting)) == (False, True, 1)
    assert popped(waiting, 9) == ["b"]


def test_what_is_pushed_again_is_put_off_and_never_brought_forward() -> None:
    waiting = DueList()
    waiting.push("a", 1)
    waiting.push("a", 5)
    waiting.push("a", 2)
    assert popped(waiting, 4.9) == []
    assert len(waiting) == 1
    assert popped(waiting, 5) == ["a"]


def test_nothing_is_popped_before_it_is_due() -> None:
    waiting = DueList()
    waiting.push("a", 5)
    assert waiting.pop(4) is None
    assert "a" in waiting
