"""Which enqueues go together: without keys or under keys of their own, on one queue, due alike. What becomes of them, schedules show."""

from quorate.adts.log import Value
from quorate.client_sdk.protocol.core.values import Enqueue, Operation, Peek, Spans
from quorate.client_sdk.protocol.operations.enqueue_round import grouped

ITEMS_MAX = 4


def enqueue(queue: str, key: str = "", delay_s: float = 0.0, items: int = 1) -> Enqueue:
    return Enqueue(f"queue/{queue}", (Value("1"),) * items, key, Spans(delay_s))


def numbers(begun: list[Operation]) -> tuple[list[int], list[list[int]]]:
    alone, groups = grouped(
        list(enumerate(begun)), ITEMS_MAX, lambda operation: operation.object == "queue/kept"
    )
    return [number for number, _ in alone], [[number for number, _ in group] for group in groups]


def test_enqueues_under_keys_on_one_queue_go_together_in_order() -> None:
    assert numbers([enqueue("a", "k"), enqueue("a", "l"), enqueue("a", "m")]) == ([], [[0, 1, 2]])


def test_those_without_a_key_do_not_wait_for_those_with_one() -> None:
    begun = [enqueue("a"), enqueue("a", "k"), enqueue("a"), enqueue("a", "l"), enqueue("a")]
    assert numbers([*begun]) == ([], [[0, 2, 4], [1, 3]])


def test_others_run_alone() -> None:
    assert numbers([Peek("queue/a"), Peek("queue/a")]) == ([0, 1], [])


def test_all_that_an_outbox_is_to_keep_goes_together() -> None:
    begun = [enqueue("kept"), enqueue("kept", "k"), enqueue("kept", "k"), enqueue("a")]
    assert numbers([*begun]) == ([3], [[0, 1, 2]])


def test_but_not_with_what_is_due_later_which_asks_for_clocks_first() -> None:
    begun = [enqueue("kept"), enqueue("kept", "k", 1.0), enqueue("kept", "l", 2.0), enqueue("kept")]
    assert numbers([*begun]) == ([], [[0, 3], [1, 2]])


def test_one_that_has_no_company_runs_alone() -> None:
    assert numbers([enqueue("a", "k"), enqueue("b", "l"), enqueue("a", "m", 1.0)]) == ([0, 1, 2], [])


def test_each_queue_has_a_group_and_a_key_that_is_there_twice_waits_for_nobody() -> None:
    begun = [enqueue("a", "k"), enqueue("b", "k"), enqueue("a", "k"), enqueue("a", "l"), enqueue("b", "l")]
    assert numbers([*begun]) == ([2], [[0, 3], [1, 4]])


def test_no_group_has_more_items_than_one_append_may_hold() -> None:
    begun = [enqueue("a", "k", items=3), enqueue("a", "l"), enqueue("a", "m"), enqueue("a", "n", items=2)]
    assert numbers([*begun]) == ([], [[0, 1], [2, 3]])
